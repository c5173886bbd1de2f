// The tasks that wait for one runner, put together in batches.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "serving/batch/batching_parameters.h"
#include "serving/model/runner.h"

namespace headrace::serving {

// A request, or a piece of one, on its way through a queue.
struct BatchTask {
  using Clock = Call::Clock;

  CallPtr call;
  Tensors inputs;  // all with so many rows, of rank 1 or more
  RunDone done;    // empty once it was called
  int64_t rows = 0;
  Clock::time_point enqueued;

  // Calls done, at most once.
  void Finish(StatusOr<Tensors> result);
};

// OK where a task may run. DeadlineExceeded "Run() timeout exceeded while
// waiting in batching queue", Cancelled.
Status WaitStatus(const BatchTask& task);

// Tasks that run together.
struct Batch {
  std::vector<BatchTask> tasks;
  int64_t rows = 0;
  BatchTask::Clock::time_point created;
  bool closed = false;  // nothing joins it
};

// Not thread-safe: the scheduler's lock guards its queues.
//
// Only tasks whose tensors fit together share a batch: those of the same
// element types and, but for the rows, the same shapes; where shorter tensors
// are padded, the same ranks. So nobody's odd request fails or changes a
// neighbour's.
class BatchQueue {
 public:
  using Clock = BatchTask::Clock;

  explicit BatchQueue(const BatchingOptions& options) : options_(options) {}

  // InvalidArgument where the task has too many rows, Unavailable where the
  // queue is full; the task is untouched then. Large tasks are cut into pieces
  // where the options say so.
  Status Add(BatchTask& task);

  // The next batch that waits for nothing more; null where there is none.
  std::unique_ptr<Batch> Take(Clock::time_point now);
  // When the first batch waits for nothing more; max() where there is none.
  Clock::time_point ReadyAt() const;

  bool empty() const { return batches_.empty(); }
  // Tasks or pieces that wait.
  int64_t waiting() const { return waiting_; }
  // From now on batches do not wait for company.
  void Close() { closed_ = true; }

  // Moves tasks that are not to run any more to the end of *stopped.
  void RemoveStopped(std::vector<BatchTask>* stopped);
  void RemoveAll(std::vector<BatchTask>* removed);

 private:
  // The batch that the task may join; null where it needs a new one.
  Batch* OpenBatchFor(const BatchTask& task) const;
  bool SharesBatch(const BatchTask& a, const BatchTask& b) const;
  // Batches that hold what may share a batch with the task.
  int64_t CountLike(const BatchTask& task) const;
  Status CheckRoom(const BatchTask& task, int64_t new_batches) const;
  void Append(Batch* batch, BatchTask&& task);
  static std::unique_ptr<Batch> NewBatch(Clock::time_point created);
  Status AddPieces(BatchTask& task, Batch* open);
  bool Ready(const Batch& batch, Clock::time_point now) const;

  const BatchingOptions options_;
  std::vector<std::unique_ptr<Batch>> batches_;  // the oldest first
  int64_t waiting_ = 0;
  int64_t rows_ = 0;  // of all that wait
  bool closed_ = false;
};

}  // namespace headrace::serving
