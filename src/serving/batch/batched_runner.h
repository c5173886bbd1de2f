// A runner whose requests run together with others.
#pragma once

#include <functional>
#include <memory>

#include "serving/batch/batch_scheduler.h"
#include "serving/model/servable.h"

namespace headrace::serving {

// Run returns at once. Errors, beside those of the runner behind: those of
// BatchQueue::Add and RowsOf, FailedPrecondition where outputs do not have the
// batch's rows, DeadlineExceeded and Cancelled for requests that were waiting.
class BatchedRunner : public Runner {
 public:
  BatchedRunner(BatchSchedulerPtr scheduler, const BatchingOptions& options,
                const BatchLabels& labels, RunnerPtr inner);
  // Requests that wait run before the runner behind goes.
  ~BatchedRunner() override;

  void Run(CallPtr call, Tensors inputs, RunDone done) override;

 private:
  const BatchSchedulerPtr scheduler_;
  const std::shared_ptr<BatchLane> lane_;
};

// For ServableOptions::wrap of that version of a model.
std::function<RunnerPtr(RunnerPtr, const Signature&, absl::Span<const int>)>
WrapInBatches(BatchSchedulerPtr scheduler, BatchingOptions options,
              ServableId id);

}  // namespace headrace::serving
