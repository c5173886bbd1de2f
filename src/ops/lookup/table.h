// Tables from keys to values that live across runs.
#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "op/op.h"
#include "op/resource.h"

namespace headrace {

// A hash table. Keys are integers, booleans, floats (by value) or strings; a
// value is a tensor of `value_shape`. Thread-safe.
class LookupTable : public Resource {
 public:
  // `fixed`: filled once, then never changed (tf.lookup.StaticHashTable).
  LookupTable(DType key, DType value, Shape value_shape, bool fixed);
  ~LookupTable() override;
  std::string DebugString() const override;
  DType key_dtype() const { return key_; }
  DType value_dtype() const { return value_; }
  const Shape& value_shape() const { return value_shape_; }

  int64_t size() const;
  // out = values of `keys`, `fallback` (one value, or one a key) where absent.
  // FailedPrecondition while a fixed table is empty of its contents.
  Status Find(const Tensor& keys, const Tensor& fallback, Tensor& out) const;
  // Adds or replaces. A fixed table refuses another value for a known key.
  Status Insert(const Tensor& keys, const Tensor& values);
  // Replaces all contents; a fixed table takes contents once.
  Status Import(const Tensor& keys, const Tensor& values);
  Status Remove(const Tensor& keys);
  // All keys and values, in no particular order.
  Status Export(Tensor* keys, Tensor* values) const;

 private:
  struct Index;
  Status Put(const Tensor& keys, const Tensor& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckPair(const Tensor& keys, const Tensor& values) const;
  Status Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DType key_, value_;
  const Shape value_shape_;
  const int64_t width_;  // elements a value
  const bool fixed_;
  mutable Mutex mutex_;
  const std::unique_ptr<Index> index_ ABSL_PT_GUARDED_BY(mutex_);
  // Rows by slot.
  Tensor keys_ ABSL_GUARDED_BY(mutex_), values_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> free_ ABSL_GUARDED_BY(mutex_);
  int64_t used_ ABSL_GUARDED_BY(mutex_) = 0;  // slots ever used
  bool filled_ ABSL_GUARDED_BY(mutex_) = false;
};

// The table behind input 0.
StatusOr<std::shared_ptr<LookupTable>> TableOf(const KernelContext& c);

}  // namespace headrace
