#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/sandbox.h"
#include "tensor/variant.h"

namespace headrace {
namespace {

using ObjectTypes = TypeList<std::string, Variant, ResourceHandle>;

// Empty tensors have no elements but a place, so that has_buffer() holds.
alignas(64) char empty_place[64];

[[gnu::cold]] Status NoMemoryFor(DType dtype, const Shape& shape) {
  // A sandbox's limit may be why, where the size is one at all.
  int64_t bytes;
  if (CountElements(shape, &bytes) &&
      !__builtin_mul_overflow(bytes, static_cast<int64_t>(DTypeSize(dtype)),
                              &bytes)) {
    HR_RETURN_IF_ERROR(CheckSandboxTensor(bytes));
    HR_RETURN_IF_ERROR(CheckSandboxMemory(bytes));
  }
  return ResourceExhausted("OOM when allocating tensor with shape",
                           shape.ToString(), " and type ", DTypeName(dtype));
}

}  // namespace

[[gnu::hot]] StatusOr<Tensor> Tensor::Allocate(DType dtype,
                                               const Shape& shape) {
  Tensor t(BaseType(dtype), shape);
  int64_t count;
  if (CountElements(shape, &count))
    t.buffer_ = BufferRef(Buffer::Allocate(t.dtype_, count));
  if (!t.buffer_) [[unlikely]] {
    return NoMemoryFor(t.dtype_, shape);
  }
  t.data_ = t.buffer_->data();
  return t;
}

Tensor Tensor::AllocateSmall(DType dtype, const Shape& shape) {
  StatusOr<Tensor> t = Allocate(dtype, shape);
  if (!t.ok()) throw std::bad_alloc();  // as containers do
  return *std::move(t);
}

Tensor Tensor::Wrap(DType dtype, Shape shape, void* data, size_t bytes,
                    void* owner, Buffer::ReleaseFn release) {
  Tensor t(dtype, std::move(shape));
  t.buffer_ = BufferRef(Buffer::Wrap(data, bytes, owner, release));
  // Python hands over null for an array without elements.
  t.data_ = data ? data : empty_place;
  return t;
}

Tensor Tensor::Borrow(DType dtype, Shape shape, void* data) {
  Tensor t(dtype, std::move(shape));
  t.data_ = data ? data : empty_place;
  return t;
}

Tensor Tensor::WithShape(Shape shape) const {
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Tensor Tensor::WithType(DType dtype, Shape shape) const {
  Tensor t = WithShape(std::move(shape));
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  Tensor t = *this;
  int64_t row = shape_.Product(1, rank());
  t.shape_.set_dim(0, end - begin);
  t.data_ = static_cast<char*>(data_) + begin * row * DTypeSize(dtype_);
  return t;
}

StatusOr<Tensor> Tensor::Clone() const {
  HR_ASSIGN_OR_RETURN(Tensor t, Allocate(dtype_, shape_));
  CopyElements(*this, t);
  return t;
}

std::string Tensor::Describe() const {
  return absl::StrCat(DTypeName(dtype_), shape_.ToString());
}

void CopyElements(const Tensor& from, Tensor& to) {
  if (IsPlain(from.dtype())) {
    std::memcpy(to.raw(), from.raw(), from.bytes());
    return;
  }
  DispatchDType(from.dtype(), ObjectTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(from.data<T>(), from.num_elements(), to.data<T>());
  });
}

void FillZero(Tensor& t) {
  if (IsPlain(t.dtype())) {
    std::memset(t.raw(), 0, t.bytes());
    return;
  }
  DispatchDType(t.dtype(), ObjectTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(t.data<T>(), t.num_elements(), T());
  });
}

}  // namespace headrace
