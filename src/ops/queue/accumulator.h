// Sums of gradients that steps and threads share: what a synchronous optimizer
// of TensorFlow 1 waits for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "op/op.h"
#include "op/resource.h"
#include "ops/queue/await_change.h"

namespace headrace {

// Adds up gradients of one time step; those of older steps are dropped. A
// subclass knows how they look. Thread-safe. Calls that wait end with
// CheckStop; where waiting is refused (WaitRefusal) they end with WouldWait,
// and are told when to try again where a place may be left.
class Accumulator : public Resource,
                    public std::enable_shared_from_this<Accumulator> {
 public:
  Accumulator(std::string name, DType dtype, Shape shape, bool mean)
      : name_(std::move(name)),
        dtype_(dtype),
        shape_(std::move(shape)),
        mean_(mean) {}
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }  // as declared
  int64_t count() const;
  // How many were dropped since it was made.
  int64_t dropped() const;
  // Later gradients of steps before `step` are dropped.
  void SetGlobalStep(int64_t step);
  // Waits until that is not the step any more: it has ended, or an earlier one
  // was set.
  Status AwaitEnd(int64_t local_step);

 protected:
  // Calls add() with the lock held, unless `local_step` is over; counts it.
  template <typename Add>
  Status Apply(int64_t local_step, Add&& add) {
    {
      MutexLock lock(mutex_);
      if (local_step < global_step_) {
        ++dropped_;
        return OkStatus();
      }
      HR_RETURN_IF_ERROR(add());
      ++count_;
    }
    TellWhoWaits();
    return OkStatus();
  }
  // Waits for `required` gradients, calls take() with the lock held and begins
  // the next step.
  template <typename Take>
  Status TakeWhenEnough(int64_t required, Take&& take) {
    {
      MutexLock lock(mutex_);
      HR_RETURN_IF_ERROR(
          AwaitThat([this, required]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
            return count_ >= required;
          }));
      HR_RETURN_IF_ERROR(take());
      count_ = 0;
      ++global_step_;
    }
    TellWhoWaits();
    return OkStatus();
  }
  int64_t counted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return count_;
  }
  bool mean() const { return mean_; }
  const std::string& name() const { return name_; }

  mutable Mutex mutex_;

 private:
  // A call that left its place until this holds, which is asked with the lock.
  class Place;
  // Waits until it holds, as CheckStop allows.
  Status AwaitThat(std::function<bool()> holds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Behind a change, without the lock: who is woken within it waits for it once
  // more.
  void TellWhoWaits() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string name_;
  const DType dtype_;
  const Shape shape_;
  const bool mean_;
  CondVar changed_;
  std::vector<Place*> places_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t global_step_ ABSL_GUARDED_BY(mutex_) = 0;
};

class DenseAccumulator : public Accumulator {
 public:
  using Accumulator::Accumulator;
  std::string DebugString() const override {
    return absl::StrCat("ConditionalAccumulator ", name());
  }
  // InvalidArgument for another shape than that declared, or of the first one.
  Status Add(int64_t local_step, const Tensor& gradient);
  // The mean or sum of all since the last call.
  StatusOr<Tensor> Take(int64_t required);

 private:
  Tensor sum_ ABSL_GUARDED_BY(mutex_);
};

class SparseAccumulator : public Accumulator {
 public:
  using Accumulator::Accumulator;
  std::string DebugString() const override {
    return absl::StrCat("SparseConditionalAccumulator ", name());
  }
  struct Rows {
    Tensor indices, values, shape;
  };
  // Rows of a tensor: `indices` [n], `values` [n, ...], and the tensor's
  // `shape`, a vector, of no elements where it is not told.
  Status Add(int64_t local_step, const Tensor& indices, const Tensor& values,
             const Tensor& shape);
  // The rows that were added since the last call, in order of their indices.
  StatusOr<Rows> Take(int64_t required);

 private:
  struct Row {
    Tensor sum;
    int64_t count = 0;
  };
  Status Check(const Tensor& indices, const Tensor& values,
               const Tensor& shape) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status AddRows(const Tensor& indices, const Tensor& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::map<int64_t, Row> rows_ ABSL_GUARDED_BY(mutex_);
  // What is known of the tensor's shape by what was added to this step's sum.
  Shape known_ ABSL_GUARDED_BY(mutex_) = Shape::UnknownRank();
};

}  // namespace headrace
