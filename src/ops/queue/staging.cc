// Stage, Unstage and their like: tuples that wait for the next step, in the
// order in which they came. The area has no handle; ops that name it alike
// share it.
#include "ops/queue/staging.h"

#include <deque>

#include "op/waiting.h"
#include "ops/queue/await_change.h"

namespace headrace {
namespace {

// Thread-safe. Calls that wait end with CheckStop.
class StagingArea : public Resource {
 public:
  explicit StagingArea(StagingLimits limits) : limits_(limits) {}
  std::string DebugString() const override { return "StagingArea"; }

  Status Put(Tuple tuple) {
    const int64_t bytes = BytesOf(tuple);
    HR_RETURN_IF_ERROR(limits_.CheckFits(bytes));
    MutexLock lock(mutex_);
    while (
        limits_.IsFull(static_cast<int64_t>(tuples_.size()), bytes_, bytes)) {
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    bytes_ += bytes;
    tuples_.push_back(std::move(tuple));
    changed_.NotifyAll();
    return OkStatus();
  }
  StatusOr<Tuple> Get() {
    MutexLock lock(mutex_);
    while (tuples_.empty()) HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    Tuple out = std::move(tuples_.front());
    tuples_.pop_front();
    bytes_ -= BytesOf(out);
    changed_.NotifyAll();
    return out;
  }
  // The tuple that is so many behind the first; waits until there is one.
  StatusOr<Tuple> Peek(int64_t at) {
    MutexLock lock(mutex_);
    while (at >= static_cast<int64_t>(tuples_.size())) {
      HR_RETURN_IF_ERROR(AwaitChange(mutex_, changed_));
    }
    return tuples_[at];
  }
  int64_t size() const {
    MutexLock lock(mutex_);
    return static_cast<int64_t>(tuples_.size());
  }
  void Clear() {
    MutexLock lock(mutex_);
    tuples_.clear();
    bytes_ = 0;
    changed_.NotifyAll();
  }

 private:
  const StagingLimits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Tuple> tuples_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

StatusOr<std::shared_ptr<StagingArea>> AreaOf(const KernelContext& c) {
  return SharedArea<StagingArea>(c);
}

Status PutStaged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto area, AreaOf(c));
  Tuple tuple;
  for (int i = 0; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(Tensor kept, KeptAlone(c.input(i)));
    tuple.push_back(std::move(kept));
  }
  return area->Put(std::move(tuple));
}

Status TakeStaged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto area, AreaOf(c));
  HR_ASSIGN_OR_RETURN(Tuple tuple, area->Get());
  return SetTuple(c, 0, std::move(tuple));
}

Status PeekStaged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto area, AreaOf(c));
  if (c.input(0).num_elements() != 1 || c.input(0).scalar<int32_t>() < 0) {
    return InvalidArgument("StagePeek: index must be a scalar >= 0, got ",
                           c.input(0).Describe());
  }
  HR_ASSIGN_OR_RETURN(Tuple tuple, area->Peek(c.input(0).scalar<int32_t>()));
  return SetTuple(c, 0, std::move(tuple));
}

Status SizeStaged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto area, AreaOf(c));
  *c.out<int32_t>(0) = static_cast<int32_t>(area->size());
  return OkStatus();
}

Status ClearStaged(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto area, AreaOf(c));
  area->Clear();
  return OkStatus();
}

OpBuilder StagingOp(const char* name, bool holds) {
  OpBuilder b(name);
  AddStagingAttrs(b, holds ? "dtypes: list(type) >= 1" : "dtypes: list(type)");
  b.Stateful().Shape(UnknownShape);
  return b;
}

[[maybe_unused]] const OpRegistrar kStagingOps[] = {
    StagingOp("Stage", true)
        .Input("values: dtypes")
        .Doc("Puts a tuple into a staging area, when there is room.")
        .Traits({kMayWait, kMayBeTried})
        .Cpu(ComputeOwn<PutStaged>),
    StagingOp("Unstage", true)
        .Output("values: dtypes")
        .Doc("Takes the oldest tuple of a staging area, when there is one.")
        .Traits({kMayWait, kMayBeTried})
        .Cpu(ComputeOwn<TakeStaged>),
    StagingOp("StagePeek", true)
        .Input("index: int32")
        .Output("values: dtypes")
        .Doc("A tuple of a staging area, which stays there.")
        .Traits({kMayWait, kMayBeTried})
        .Cpu(ComputeOwn<PeekStaged>),
    StagingOp("StageSize", false)
        .Output("size: int32")
        .Doc("How many tuples a staging area holds.")
        .Shape(ScalarShape)
        .Cpu(Compute<SizeStaged>),
    StagingOp("StageClear", false)
        .Doc("Empties a staging area.")
        .Cpu(Compute<ClearStaged>),
};

}  // namespace
}  // namespace headrace
