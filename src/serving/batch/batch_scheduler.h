// The threads that run batches: one pool for all models and versions.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serving/batch/batch_lane.h"

namespace headrace::serving {

// Thread-safe. Queues are served in turn. No thread is blocked while a task
// waits.
class BatchScheduler {
 public:
  // ResourceExhausted where the system gives no threads. The options'
  // num_batch_threads and thread_pool_name are taken.
  static StatusOr<std::shared_ptr<BatchScheduler>> Start(
      const BatchingOptions& options);
  // Runs what waits first. May be called in one of its own threads.
  ~BatchScheduler();
  BatchScheduler(const BatchScheduler&) = delete;
  BatchScheduler& operator=(const BatchScheduler&) = delete;

  const std::string& pool_name() const { return pool_name_; }

  // Adds a task, which is finished later, and maybe before this returns. On an
  // error (BatchQueue::Add) the task is as it was.
  Status Submit(const std::shared_ptr<BatchLane>& lane, BatchTask& task);
  // No task is added any more: what waits in the queue waits for no company.
  void Close(const std::shared_ptr<BatchLane>& lane);

  // Finishes all tasks that wait, unrun, with this error.
  void FailWaiting(const Status& status);
  // Tasks that wait.
  int64_t waiting() const;

 private:
  // Outlives the scheduler where one of its own threads ends it.
  class Core;
  BatchScheduler(std::shared_ptr<Core> core, std::string pool_name)
      : core_(std::move(core)), pool_name_(std::move(pool_name)) {}

  const std::shared_ptr<Core> core_;
  const std::string pool_name_;
  std::vector<std::thread> threads_;
};
using BatchSchedulerPtr = std::shared_ptr<BatchScheduler>;

}  // namespace headrace::serving
