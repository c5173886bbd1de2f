#include "serving/batch/batched_runner.h"

#include <utility>

#include "base/guard.h"
#include "serving/batch/batch_tensors.h"

namespace headrace::serving {

BatchedRunner::BatchedRunner(BatchSchedulerPtr scheduler,
                             const BatchingOptions& options,
                             const BatchLabels& labels, RunnerPtr inner)
    : scheduler_(std::move(scheduler)),
      lane_(std::make_shared<BatchLane>(
          options, labels, scheduler_->pool_name(), std::move(inner))) {}

BatchedRunner::~BatchedRunner() { scheduler_->Close(lane_); }

void BatchedRunner::Run(CallPtr call, Tensors inputs, RunDone done) {
  BatchTask task;
  task.call = std::move(call);
  task.inputs = std::move(inputs);
  task.done = std::move(done);
  Status s = Guarded("a request", [&] {
    HR_ASSIGN_OR_RETURN(
        task.rows,
        RowsOf(task.inputs, lane_->options.pad_variable_length_inputs));
    lane_->metrics.input_size->Record(static_cast<double>(task.rows));
    task.enqueued = BatchTask::Clock::now();
    return scheduler_->Submit(lane_, task);
  });
  if (!s.ok()) task.Finish(std::move(s));
}

std::function<RunnerPtr(RunnerPtr, const Signature&, absl::Span<const int>)>
WrapInBatches(BatchSchedulerPtr scheduler, BatchingOptions options,
              ServableId id) {
  return [=](RunnerPtr inner, const Signature& signature,
             absl::Span<const int>) -> RunnerPtr {
    return std::make_shared<BatchedRunner>(
        scheduler, options, BatchLabels{id.name, id.version, signature.key},
        std::move(inner));
  };
}

}  // namespace headrace::serving
