#include "serving/batch/batch_lane.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "serving/batch/batch_tensors.h"

namespace headrace::serving {

BatchMetrics::BatchMetrics(const BatchLabels& labels, const std::string& pool)
    : queue_depth(
          metrics::QueueDepth(labels.model, labels.version, labels.signature)),
      batch_size(
          metrics::BatchSize(labels.model, labels.version, labels.signature)),
      input_size(metrics::BatchInputSize()),
      processed_size(metrics::BatchProcessedSize()),
      queuing_latency(metrics::BatchQueuingLatency(pool)),
      runs(metrics::BatchWrappedRunCount()) {}

void BatchMetrics::BatchRuns(const Batch& batch, int64_t size) const {
  runs->Increment();
  batch_size->Record(static_cast<double>(batch.rows));
  processed_size->Record(static_cast<double>(size));
  metrics::BatchPaddingSize(size)->Record(
      static_cast<double>(size - batch.rows));
  const auto now = BatchTask::Clock::now();
  for (const BatchTask& task : batch.tasks) {
    const std::chrono::duration<double, std::micro> waited =
        now - task.enqueued;
    queuing_latency->Record(waited.count());
  }
}

void DropStopped(Batch& batch) {
  std::erase_if(batch.tasks, [&](BatchTask& task) {
    Status s = WaitStatus(task);
    if (s.ok()) return false;
    batch.rows -= task.rows;
    task.Finish(std::move(s));
    return true;
  });
}

CallPtr CallFor(const Batch& batch) {
  if (batch.tasks.size() == 1) return batch.tasks[0].call;
  auto last = Call::Clock::time_point::min();
  for (const BatchTask& task : batch.tasks) {
    last = std::max(last, task.call->deadline());
  }
  return std::make_shared<Call>(last, static_cast<int>(batch.tasks.size()));
}

void FinishTasks(std::vector<BatchTask> tasks, StatusOr<Tensors> outputs,
                 int64_t size) {
  Status s = outputs.ok() ? CheckOutputs(*outputs, size) : outputs.status();
  if (s.ok() && tasks.size() == 1 && tasks[0].rows == size) {
    return tasks[0].Finish(*std::move(outputs));
  }
  int64_t row = 0;
  for (BatchTask& task : tasks) {
    Tensors rows;
    if (s.ok()) {
      s = Guarded("a batch", [&] {
        rows = RowsOfAll(*outputs, row, task.rows);
        return OkStatus();
      });
    }
    row += task.rows;
    if (s.ok()) {
      task.Finish(std::move(rows));
    } else {
      task.Finish(s);
    }
  }
}

void RunningBatch::RemoveStopped(std::vector<BatchTask>* stopped) {
  MutexLock lock(mutex_);
  if (batch_ == nullptr) return;
  bool wanted = false;
  for (BatchTask& task : batch_->tasks) {
    if (!task.done) continue;
    if (!task.call->stop().cancelled()) {
      wanted = true;
      continue;
    }
    BatchTask& moved = stopped->emplace_back();
    moved.call = task.call;
    moved.done = std::exchange(task.done, nullptr);
  }
  if (!wanted) call_->stop().Cancel();
}

void RunningBatch::Finish(StatusOr<Tensors> outputs, int64_t size) {
  std::unique_ptr<Batch> batch;
  {
    MutexLock lock(mutex_);
    batch = std::move(batch_);
  }
  if (batch == nullptr) return;
  FinishTasks(std::move(batch->tasks), std::move(outputs), size);
}

}  // namespace headrace::serving
