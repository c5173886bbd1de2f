// A function that waits for a worker, with its arguments, and its result.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cc/function_state.h"
#include "distributed/coordinator/call_queue.h"
#include "headrace/coordinator.h"
#include "op/remote_place.h"
#include "tensor/variant.h"

namespace headrace::tf::internal {

// A worker in one of its lives.
struct WorkersLife {
  int worker = 0;
  std::shared_ptr<RemotePlace> place;
  uint64_t number = 0;  // no other life of any worker has it
  // What functions captured, as far as the worker keeps it.
  std::map<std::weak_ptr<const BodyTrace>, std::vector<headrace::Tensor>,
           std::owner_less<>>
      captured;
};

struct DatasetOfWorkers {
  std::vector<headrace::Tensor> graphs;  // one a worker
  data::ElementSpec spec;
};

// What the handle of a WorkerIterator holds here: of each worker the iterator
// that it has. Thread-safe.
class IteratorOfWorkers : public Resource {
 public:
  explicit IteratorOfWorkers(std::shared_ptr<const DatasetOfWorkers> dataset)
      : dataset_(std::move(dataset)), made_(dataset_->graphs.size()) {}
  std::string DebugString() const override {
    return "An iterator of each worker of a cluster";
  }
  // That of a worker, made where this life of it has none.
  headrace::Tensor On(const WorkersLife& life);
  size_t num_workers() const { return dataset_->graphs.size(); }

 private:
  struct Made {
    uint64_t life = 0;
    headrace::Tensor handle;
  };
  const std::shared_ptr<const DatasetOfWorkers> dataset_;
  Mutex mutex_;
  std::vector<Made> made_ ABSL_GUARDED_BY(mutex_);
};
// Null for all other tensors.
std::shared_ptr<IteratorOfWorkers> IteratorIn(const headrace::Tensor& t);

// Thread-safe.
class ScheduledCall : public headrace::distributed::QueuedCall {
 public:
  // Throws for what cannot be run on a worker, of so many.
  ScheduledCall(BodyTracePtr trace, absl::Span<const Value> leaves,
                size_t num_workers);

  // On a worker; its results are kept.
  Status Run(WorkersLife* life);
  void Settle(const Status& s) override;
  // Waits; throws the error.
  void Fetch(Taken result);
  bool IsSettled() const;
  // One more run whose error says that a task was lost where none is: how many
  // there were.
  int CountFalseLoss() { return ++false_losses_; }

 private:
  void RunOn(WorkersLife* life);

  const BodyTracePtr trace_;
  const std::vector<Value> leaves_;
  int false_losses_ = 0;  // of the thread that runs it
  mutable Mutex mutex_;
  CondVar ended_;
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<Value> outputs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::tf::internal
