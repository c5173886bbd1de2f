// A worker's walk along a dataset, and what is ready of it.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/iterate/iterator_resource.h"
#include "distributed/data_service/element_wire.h"
#include "headrace/data_service.pb.h"
#include "op/resource.h"

namespace headrace::distributed::data_service {

// What a task makes elements of.
struct TaskWork {
  ServiceTask task;
  ServiceIteration iteration;
  DatasetPtr dataset;
  Status broken;  // why there is none
  std::shared_ptr<SourceShares> shares;
  bool by_snappy = false;
  // Called by the request that takes the last; must not wait.
  std::function<void()> on_end;
};

// Thread-safe. One thread fills it, from the first request on.
class WorkerTask : public std::enable_shared_from_this<WorkerTask> {
 public:
  explicit WorkerTask(TaskWork work) : work_(std::move(work)) {}

  // Elements that are ready, at least one unless it is the end; waits for it,
  // as CheckStop allows. Errors of the pipeline are among them; an error of
  // this call is one of the request.
  Status Take(const GetElementsRequest& request, Bytes* answer);
  // Who waits is told Unavailable.
  void Stop();
  const ServiceTask& task() const { return work_.task; }

 private:
  using Taken = std::shared_ptr<const Packed>;
  struct Round {
    std::vector<Taken> items;  // by consumer; null: taken
    size_t left = 0;
  };

  Status Check(const GetElementsRequest& request) const;
  void Fill();
  Packed MakeOne(Iteration* walk, bool* end);
  // Puts one behind those that are ready, and waits for room; false where it is
  // stopped.
  bool Give(Packed made, bool end);
  // Whether there is room for what comes next.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False where there is nothing yet.
  bool TakeReady(const GetElementsRequest& request, std::vector<Packed>* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeFirst(int most, std::vector<Packed>* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeOfCache(const std::string& trainer, int most,
                   std::vector<Packed>* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeOfRound(const GetElementsRequest& request, std::vector<Packed>* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TaskWork work_;
  CancellationToken token_;
  Mutex mutex_;
  CondVar changed_;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // the walk is
  std::deque<Taken> ready_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of a shared cache: the number of the first that is ready, and the next of
  // each trainer.
  int64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> next_ ABSL_GUARDED_BY(mutex_);
  // Of coordinated reads: those that not all consumers have taken.
  std::map<int64_t, Round> rounds_ ABSL_GUARDED_BY(mutex_);
  int64_t last_round_ ABSL_GUARDED_BY(mutex_) = -1;
};

}  // namespace headrace::distributed::data_service
