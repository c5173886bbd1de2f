// Tensor: a dtype, a shape and a counted buffer.
#pragma once

#include <string>
#include <utility>

#include "absl/types/span.h"
#include "base/status.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace headrace {

// Copying shares the buffer. Elements are dense, row-major, and immutable once
// the tensor is shared between threads; kernels write only into outputs that
// they were handed. A default-constructed Tensor has dtype kInvalid and no
// buffer; a tensor with a dtype and shape but no buffer describes a value that
// is not there yet.
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  // A tensor that was moved from has no buffer: has_buffer() is asked of the
  // slots of plans, which hand their results on.
  Tensor(Tensor&& o) noexcept
      : buffer_(std::move(o.buffer_)),
        data_(std::exchange(o.data_, nullptr)),
        shape_(std::move(o.shape_)),
        dtype_(o.dtype_) {}
  Tensor& operator=(Tensor&& o) noexcept {
    buffer_ = std::move(o.buffer_);
    data_ = std::exchange(o.data_, nullptr);
    shape_ = std::move(o.shape_);
    dtype_ = o.dtype_;
    return *this;
  }
  // Describes: no buffer.
  Tensor(DType dtype, Shape shape) : shape_(std::move(shape)), dtype_(dtype) {}

  // Uninitialised elements (objects: default constructed). ResourceExhausted
  // when memory ends; `shape` must be fully known.
  static StatusOr<Tensor> Allocate(DType dtype, const Shape& shape);
  // Memory of another owner; see Buffer::Wrap. `data` must be aligned to the
  // element.
  static Tensor Wrap(DType dtype, Shape shape, void* data, size_t bytes,
                     void* owner, Buffer::ReleaseFn release);
  // Borrows memory that outlives the tensor and all its copies.
  static Tensor Borrow(DType dtype, Shape shape, void* data);
  // A scalar; small allocations are taken not to fail.
  template <typename T>
  static Tensor Scalar(T value) {
    Tensor t = AllocateSmall(DTypeOf<T>, Shape());
    *t.data<T>() = std::move(value);
    return t;
  }
  // A vector of the values.
  template <typename T>
  static Tensor Vector(absl::Span<const T> values) {
    Tensor t =
        AllocateSmall(DTypeOf<T>, Shape{static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  static Tensor Vector(const Shape& s) { return Vector<int64_t>(s.dims()); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_[i]; }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t bytes() const { return num_elements() * DTypeSize(dtype_); }
  bool has_buffer() const { return data_ != nullptr; }

  void* raw() const { return data_; }
  // The elements; T must be the dtype's C++ type.
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_);
  }
  template <typename T>
  absl::Span<T> span() const {
    return absl::Span<T>(data<T>(), num_elements());
  }
  template <typename T>
  T& scalar() const {
    return *data<T>();
  }

  // The same elements under another shape of the same count.
  Tensor WithShape(Shape shape) const;
  // The same bytes as another dtype and shape of the same byte count.
  Tensor WithType(DType dtype, Shape shape) const;
  // Rows [begin, end) of the first dimension, sharing the buffer.
  Tensor Rows(int64_t begin, int64_t end) const;
  // A copy of its own; ResourceExhausted when memory ends.
  StatusOr<Tensor> Clone() const;

  // True when nobody else sees the buffer and it may be written in place.
  bool exclusive() const {
    return buffer_ && buffer_->unique() && buffer_->owned();
  }
  bool SharesBufferWith(const Tensor& o) const {
    return buffer_ && buffer_.get() == o.buffer_.get();
  }
  // True when the memory is kept alive by this tensor; false when borrowed.
  bool counted() const { return static_cast<bool>(buffer_); }

  // Element i of an integer tensor (int32 or int64) as int64.
  int64_t IntAt(int64_t i) const {
    return dtype_ == DType::kInt32 ? data<int32_t>()[i] : data<int64_t>()[i];
  }
  // "float[2,3]": for messages.
  std::string Describe() const;

 private:
  static Tensor AllocateSmall(DType dtype, const Shape& shape);

  BufferRef buffer_;
  void* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::kInvalid;
};

// Copies elements between plain or object tensors of one dtype and count.
void CopyElements(const Tensor& from, Tensor& to);
// Fills with zeros (empty strings).
void FillZero(Tensor& t);

}  // namespace headrace
