// A function that waits for a worker, with its arguments, and its result.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cc/function_state.h"
#include "distributed/coordinator/call_queue.h"
#include "distributed/coordinator/coordinated.h"
#include "distributed/eager/device_place.h"
#include "headrace/coordinator.h"
#include "op/remote_place.h"
#include "tensor/variant.h"

namespace headrace::tf::internal {

// Longer than any call is said to take: that of a function that has not run.
inline constexpr std::chrono::hours kUnknownTime{1};

// A worker in one of its lives.
struct WorkersLife {
  int worker = 0;
  headrace::distributed::Coordinated* tasks = nullptr;
  std::shared_ptr<RemotePlace> place;
  uint64_t number = 0;  // no other life of any worker has it
  // Of a function: what it captured, as far as the worker keeps it, and how
  // long its last call took there.
  struct Known {
    std::vector<headrace::Tensor> captured;
    std::chrono::nanoseconds took = kUnknownTime;
  };
  std::map<std::weak_ptr<const BodyTrace>, Known, std::owner_less<>> functions;
  // Whether it takes several calls at once.
  bool goes_together = true;
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

  // On a worker; its results are kept, and so is how long it took.
  Status Run(WorkersLife* life);
  // The same in two parts: the call, as the worker takes it, and its results.
  Status Prepare(WorkersLife* life, headrace::distributed::FunctionCall* call);
  void Give(std::vector<headrace::Tensor> outputs);
  // How long a call of the function takes there. Not known of functions that
  // run in steps, nor of those that are given variables, as they then may.
  std::chrono::nanoseconds Took(const WorkersLife& life) const;
  void SetTook(std::chrono::nanoseconds took, WorkersLife* life) const;
  void Settle(const Status& s) override;
  // Waits; throws the error.
  void Fetch(Taken result);
  bool IsSettled() const;
  // One more run whose error says that a task was lost where none is: how many
  // there were.
  int CountFalseLoss() { return ++false_losses_; }

 private:
  std::vector<headrace::Tensor> InputsOn(WorkersLife* life);

  const BodyTracePtr trace_;
  const std::vector<Value> leaves_;
  bool is_given_variables_ = false;
  int false_losses_ = 0;  // of the thread that runs it
  mutable Mutex mutex_;
  CondVar ended_;
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  Status error_ ABSL_GUARDED_BY(mutex_);
  std::vector<Value> outputs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::tf::internal
