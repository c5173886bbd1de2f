// For tests of requests that run in batches: a runner with one thread.
#pragma once

#include <memory>
#include <utility>

#include "serving/batch/batched_runner.h"
#include "serving/batch/test_runner.h"

namespace headrace::serving {

class BatchedRunnerTest : public testing::Test {
 protected:
  BatchedRunnerTest() {
    options_.num_batch_threads = 1;
    options_.max_batch_size = options_.max_execution_batch_size = 8;
  }
  Runner& runner() {
    if (runner_ == nullptr) {
      if (scheduler_ == nullptr) scheduler_ = *BatchScheduler::Start(options_);
      runner_ = std::make_shared<BatchedRunner>(
          scheduler_, options_, BatchLabels{"m", 1, "s"}, inner_);
    }
    return *runner_;
  }
  CallPtr Ask(
      Answer& answer, Tensors inputs,
      Call::Clock::time_point deadline = Call::Clock::time_point::max()) {
    auto call = std::make_shared<Call>(deadline);
    runner().Run(call, std::move(inputs), answer.done());
    return call;
  }
  // The only thread is busy with a batch until Release.
  void Block(Answer& answer) {
    inner_->Hold();
    Ask(answer, {FloatRows(1, 1, 100)});
    inner_->WaitForBatches(1);
  }

  BatchingOptions options_;
  std::shared_ptr<FakeRunner> inner_ = std::make_shared<FakeRunner>();
  BatchSchedulerPtr scheduler_;
  RunnerPtr runner_;
};

}  // namespace headrace::serving
