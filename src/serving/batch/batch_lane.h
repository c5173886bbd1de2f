// One runner with its queue, and how its batches run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "serving/batch/batch_queue.h"
#include "serving/metrics/metrics.h"

namespace headrace::serving {

// Whose tasks they are, for metrics.
struct BatchLabels {
  std::string model;
  int64_t version = 0;
  std::string signature;
};

struct BatchMetrics {
  BatchMetrics(const BatchLabels& labels, const std::string& pool);
  // A batch begins to run, filled up to `size` rows.
  void BatchRuns(const Batch& batch, int64_t size) const;

  metrics::GaugePtr queue_depth;
  metrics::HistogramPtr batch_size, input_size, processed_size, queuing_latency;
  metrics::CounterPtr runs;
};

struct BatchLane {
  BatchLane(const BatchingOptions& o, const BatchLabels& labels,
            const std::string& pool, RunnerPtr inner)
      : options(o), metrics(labels, pool), runner(std::move(inner)), queue(o) {}

  const BatchingOptions options;
  const BatchMetrics metrics;
  const RunnerPtr runner;
  // Tells the metrics how many wait.
  void TellDepth() {
    const int64_t waiting = queue.waiting();
    if (waiting == told) return;
    // Several lanes of a signature, one for each set of outputs, are told
    // together.
    metrics.queue_depth->Add(static_cast<double>(waiting - told));
    told = waiting;
  }

  // All guarded by the scheduler's lock.
  BatchQueue queue;
  bool listed = false;  // among those whose queues are not empty
  int64_t told = 0;
};

// A batch as it runs. Each task is finished once: at the end, or before where
// it was cancelled or its deadline passed. The run stops when none is left.
// Thread-safe.
class RunningBatch {
 public:
  // `call` is that of the only task, or one for all of them: CallFor.
  RunningBatch(std::unique_ptr<Batch> batch, CallPtr call) noexcept
      : call_(std::move(call)), batch_(std::move(batch)) {}

  const CallPtr& call() const { return call_; }
  // Moves tasks that nobody waits for any more to the end of *stopped.
  void RemoveStopped(std::vector<BatchTask>* stopped);
  // Gives each task its rows, or all the error. Nothing when called again.
  void Finish(StatusOr<Tensors> outputs, int64_t size);

 private:
  const CallPtr call_;
  Mutex mutex_;
  std::unique_ptr<Batch> batch_ ABSL_GUARDED_BY(mutex_);
};

// What a batch runs under: the latest deadline of its tasks.
CallPtr CallFor(const Batch& batch);

// Finishes the tasks of a batch that are not to run any more and takes them
// out.
void DropStopped(Batch& batch);

// Gives each task its rows, or all the error.
void FinishTasks(std::vector<BatchTask> tasks, StatusOr<Tensors> outputs,
                 int64_t size);

}  // namespace headrace::serving
