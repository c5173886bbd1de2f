// Tables from keys to values that live across runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "op/op.h"
#include "op/table.h"

namespace headrace {

// A hash table. Keys are integers, booleans, floats (by value) or strings; a
// value is a tensor of `value_shape`.
class LookupTable : public Table {
 public:
  // `fixed`: filled once, then never changed (tf.lookup.StaticHashTable).
  LookupTable(DType key, DType value, Shape value_shape, bool fixed);
  ~LookupTable() override;

  int64_t size() const override;
  // FailedPrecondition while a fixed table is empty of its contents.
  Status Find(const Tensor& keys, const Tensor& fallback,
              Tensor& out) const override;
  // A fixed table refuses another value for a known key.
  Status Insert(const Tensor& keys, const Tensor& values) override;
  // A fixed table takes contents once.
  Status Import(const Tensor& keys, const Tensor& values) override;
  Status Remove(const Tensor& keys) override;
  Status Export(Tensor* keys, Tensor* values) const override;

 private:
  struct Index;
  Status Put(const Tensor& keys, const Tensor& values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckPair(const Tensor& keys, const Tensor& values) const;
  Status Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

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

// Copies `n` elements from element `from` of x to element `to` of y.
void CopyStretch(const Tensor& x, int64_t from, const Tensor& y, int64_t to,
                 int64_t n);
// Whether the `n` elements from `i` of x and from `j` of y are the same.
bool SameStretch(const Tensor& x, int64_t i, const Tensor& y, int64_t j,
                 int64_t n);

// The table behind input 0.
StatusOr<std::shared_ptr<Table>> TableOf(const KernelContext& c);
// Makes output 0 a handle of a table, of that name where the op has one:
// InvalidArgument where the table of that name has other types. `data`: of a
// value; behind it of a key, where export gives buckets.
Status HandTable(KernelContext& c, bool named, HandleData data,
                 const std::function<StatusOr<std::shared_ptr<Table>>()>& make);

}  // namespace headrace
