// Tables in one block of buckets (tf.lookup.experimental.DenseHashTable).
#pragma once

#include "ops/lookup/table.h"

namespace headrace {

// A row a bucket, a power of two of them: a key and its value, or the key that
// is told to stand for nothing. A key lies in the first bucket that is free of
// h, h + 1, h + 1 + 2, h + 1 + 2 + 3, …, where h is its hash. Keys may be
// vectors; neither they nor the two keys that were told can be looked up.
class DenseTable : public Table {
 public:
  struct Options {
    Tensor empty_key, deleted_key;  // two keys, which differ
    DType value = DType::kInvalid;
    Shape value_shape;
    int64_t buckets = 0;  // at first
    float most_full = 0;  // beyond this share there come to be twice as many
  };
  // InvalidArgument for options that make no table.
  static StatusOr<std::shared_ptr<Table>> Make(Options options);

  Shape key_shape() const override { return o_.empty_key.shape(); }
  int64_t size() const override;
  Status Find(const Tensor& keys, const Tensor& fallback,
              Tensor& out) const override;
  Status Insert(const Tensor& keys, const Tensor& values) override;
  // Takes what Export gave: buckets that hold nothing are passed over, and as
  // many as come there will be. Rows of keys and values do as well.
  Status Import(const Tensor& keys, const Tensor& values) override;
  Status Remove(const Tensor& keys) override;
  // All buckets: [buckets, elements of a key], [buckets, value...].
  Status Export(Tensor* keys, Tensor* values) const override;

 private:
  explicit DenseTable(Options o);
  struct Buckets {
    Tensor keys, values;
    int64_t count = 0;
    int64_t entries = 0;  // keys that are there
    int64_t taken = 0;    // those, and those that were deleted
  };
  bool IsEmpty(const Tensor& keys, int64_t row) const;
  bool IsDeleted(const Tensor& keys, int64_t row) const;
  // InvalidArgument where one of the rows is one of the two keys.
  Status CheckKeys(const Tensor& keys) const;
  uint64_t HashOf(const Tensor& keys, int64_t row) const;
  // The bucket of the key, or the free one where it belongs.
  int64_t PlaceOf(const Buckets& b, const Tensor& keys, int64_t row) const;
  StatusOr<Buckets> Empty(int64_t count) const;
  void Put(Buckets* b, const Tensor& keys, const Tensor& values,
           int64_t row) const;
  // All that is in `from`, in at least `count` buckets.
  StatusOr<Buckets> Rearranged(const Buckets& from, int64_t count) const;
  int64_t Enough(int64_t count, int64_t entries) const;

  const Options o_;
  const int64_t key_width_, width_;  // elements of a key, of a value
  mutable Mutex mutex_;
  Buckets buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace
