// Tables from keys to values, whatever fills them.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "op/resource.h"

namespace headrace {

// What all kinds of tables do. Thread-safe.
class Table : public Resource {
 public:
  Table(DType key, DType value, Shape value_shape)
      : key_(key), value_(value), value_shape_(std::move(value_shape)) {}
  std::string DebugString() const override {
    return absl::StrCat("A lookup table from ", DTypeName(key_), " to ",
                        DTypeName(value_), value_shape_.ToString());
  }
  DType key_dtype() const { return key_; }
  DType value_dtype() const { return value_; }
  const Shape& value_shape() const { return value_shape_; }
  // Of one key.
  virtual Shape key_shape() const { return Shape(); }

  virtual int64_t size() const = 0;
  // out = values of `keys`, `fallback` (one value, or one a key) where absent.
  virtual Status Find(const Tensor& keys, const Tensor& fallback,
                      Tensor& out) const = 0;
  // Adds or replaces.
  virtual Status Insert(const Tensor& keys, const Tensor& values) = 0;
  // Replaces all contents.
  virtual Status Import(const Tensor& keys, const Tensor& values) = 0;
  virtual Status Remove(const Tensor& keys) = 0;
  // All keys and values, in no particular order.
  virtual Status Export(Tensor* keys, Tensor* values) const = 0;

 protected:
  const DType key_, value_;
  const Shape value_shape_;
};

}  // namespace headrace
