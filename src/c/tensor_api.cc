// The functions of tf_tensor.h and tf_datatype.h.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "c/buffer.h"
#include "c/status.h"
#include "c/strings.h"
#include "c/tensor.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace headrace::capi {
namespace {

// What kernels of the library align their memory to.
constexpr size_t kAlignment = 64;

using TensorPtr = std::unique_ptr<TF_Tensor>;

// A caller's memory until the last tensor of it goes.
struct CallersMemory {
  void* data;
  size_t len;
  void (*deallocator)(void* data, size_t len, void* arg);
  void* arg;

  void GiveBack() const {
    if (deallocator) deallocator(data, len, arg);
  }
  static void Release(void* owner) {
    std::unique_ptr<CallersMemory> memory(static_cast<CallersMemory*>(owner));
    memory->GiveBack();
  }
};

// Whether memory may be read as elements of the type where it lies.
bool IsAlignedFor(DType dtype, const void* data) {
  const size_t element =
      IsComplex(dtype) ? DTypeSize(dtype) / 2 : DTypeSize(dtype);
  return reinterpret_cast<uintptr_t>(data) % element == 0;
}

// Null where type, sizes and bytes do not fit together. `element`: the least
// bytes of one.
TensorPtr Described(TF_DataType type, const int64_t* dims, int num_dims,
                    size_t len, size_t element) {
  StatusOr<DType> dtype = ToDType(type);
  StatusOr<Shape> shape = ToShape(dims, num_dims, false);
  if (!dtype.ok() || !shape.ok() || IsRef(*dtype)) return nullptr;
  auto t = std::make_unique<TF_Tensor>();
  t->dtype = *dtype;
  t->shape = *std::move(shape);
  t->bytes = len;
  size_t least;
  if (__builtin_mul_overflow(static_cast<size_t>(t->shape.num_elements()),
                             element, &least) ||
      len < least) {
    return nullptr;
  }
  return t;
}

// Takes the memory on; false where that cannot be.
bool TakeMemory(TF_Tensor* t, const CallersMemory& memory) {
  if (t->dtype == DType::kString) {
    t->strings = std::make_shared<Strings>(memory.data, memory.len,
                                           memory.deallocator, memory.arg);
    t->data = memory.data;
    return true;
  }
  if (t->dtype == DType::kResource) {
    t->handle = std::make_shared<std::string>(
        static_cast<const char*>(memory.data), memory.len);
    StatusOr<Tensor> handle = HandleFromBytes(*t->handle);
    if (!handle.ok()) return false;
    t->tensor = *std::move(handle);
    t->data = t->handle->data();
    memory.GiveBack();
    return true;
  }
  if (t->dtype == DType::kVariant) return false;
  if (t->shape.num_elements() > 0 && memory.data &&
      IsAlignedFor(t->dtype, memory.data)) {
    auto owner = std::make_unique<CallersMemory>(memory);
    t->tensor = Tensor::Wrap(t->dtype, t->shape, memory.data, memory.len,
                             owner.release(), CallersMemory::Release);
  } else {
    StatusOr<Tensor> copy = Tensor::Allocate(t->dtype, t->shape);
    if (!copy.ok() || (copy->bytes() > 0 && memory.data == nullptr)) {
      return false;
    }
    if (copy->bytes() > 0) {
      std::memcpy(copy->raw(), memory.data, copy->bytes());
    }
    t->tensor = *std::move(copy);
    memory.GiveBack();
  }
  t->data = t->tensor.raw();
  return true;
}

void FreeMemory(void* data, size_t, void*) { std::free(data); }

// Callers may ask for more bytes than the elements take.
bool AllocateNumbers(TF_Tensor* t, size_t len) {
  const size_t least = t->shape.num_elements() * DTypeSize(t->dtype);
  if (len > least && least > 0) {
    const size_t rounded = (len + kAlignment - 1) / kAlignment * kAlignment;
    void* data =
        rounded < len ? nullptr : std::aligned_alloc(kAlignment, rounded);
    return data && TakeMemory(t, {data, len, FreeMemory, nullptr});
  }
  StatusOr<Tensor> made = Tensor::Allocate(t->dtype, t->shape);
  if (!made.ok()) return false;
  t->tensor = *std::move(made);
  t->data = t->tensor.raw();
  t->bytes = least;
  return true;
}

Status Bitcast(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
               const int64_t* dims, int num_dims) {
  HR_RETURN_IF_ERROR(NotNull(from, "from"));
  HR_RETURN_IF_ERROR(NotNull(to, "to"));
  HR_ASSIGN_OR_RETURN(DType dtype, ToDType(type));
  HR_ASSIGN_OR_RETURN(Shape shape, ToShape(dims, num_dims, false));
  if (!IsPlain(dtype) || !IsPlain(from->dtype)) {
    return InvalidArgument("cannot bitcast ", DTypeName(from->dtype), " to ",
                           DTypeName(dtype), ": one of them is no number");
  }
  HR_ASSIGN_OR_RETURN(Tensor t, ToTensor(from));
  int64_t bytes;
  if (!MultiplyChecked(shape.num_elements(), DTypeSize(dtype), &bytes) ||
      bytes != static_cast<int64_t>(t.bytes())) {
    return InvalidArgument("cannot bitcast ", t.Describe(), " to ",
                           DTypeName(dtype), shape,
                           ": the number of bytes differs");
  }
  return SetTensor(to, t.WithType(dtype, std::move(shape)));
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;
using headrace::DType;

size_t TF_DataTypeSize(TF_DataType dt) {
  const int number = static_cast<int>(dt);
  if (dt == TF_FLOAT4_E2M1FN) return 1;
  if (!headrace::DTypeIsValid(number) || number > headrace::kRefOffset ||
      !headrace::IsPlain(static_cast<DType>(number))) {
    return 0;
  }
  return headrace::DTypeSize(static_cast<DType>(number));
}

TF_Tensor* TF_NewTensor(TF_DataType dtype, const int64_t* dims, int num_dims,
                        void* data, size_t len,
                        void (*deallocator)(void* data, size_t len, void* arg),
                        void* deallocator_arg) {
  const capi::CallersMemory memory{data, len, deallocator, deallocator_arg};
  capi::TensorPtr t = capi::OrElse<capi::TensorPtr>(nullptr, [&] {
    const size_t element =
        dtype == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(dtype);
    capi::TensorPtr t = capi::Described(dtype, dims, num_dims, len, element);
    const bool has_data = data != nullptr || len == 0;
    return t && has_data && capi::TakeMemory(t.get(), memory) ? std::move(t)
                                                              : nullptr;
  });
  if (!t) memory.GiveBack();
  return t.release();
}

TF_Tensor* TF_AllocateTensor(TF_DataType dtype, const int64_t* dims,
                             int num_dims, size_t len) {
  return capi::OrElse<TF_Tensor*>(nullptr, [&]() -> TF_Tensor* {
    capi::TensorPtr t =
        capi::Described(dtype, dims, num_dims, len, TF_DataTypeSize(dtype));
    if (!t || t->dtype == DType::kVariant) return nullptr;
    if (t->dtype == DType::kString) {
      t->strings = std::make_shared<capi::Strings>(t->shape.num_elements());
      t->data = t->strings->data();
      t->bytes = t->shape.num_elements() * sizeof(TF_TString);
      return t->data ? t.release() : nullptr;
    }
    if (t->dtype == DType::kResource) {
      t->handle = std::make_shared<std::string>(len, '\0');
      t->data = t->handle->data();
      return t.release();
    }
    return capi::AllocateNumbers(t.get(), len) ? t.release() : nullptr;
  });
}

size_t TF_TensorDefaultAlignment() { return capi::kAlignment; }

bool TF_TensorIsAligned(const TF_Tensor* t) {
  return t && reinterpret_cast<uintptr_t>(t->data) % capi::kAlignment == 0;
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  return tensor && tensor->tensor.exclusive() ? tensor : nullptr;
}

void TF_DeleteTensor(TF_Tensor* t) { delete t; }

TF_DataType TF_TensorType(const TF_Tensor* t) {
  return static_cast<TF_DataType>(t ? t->dtype : DType::kInvalid);
}

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  if (tensor == nullptr) return;
  headrace::StatusOr<headrace::Shape> shape =
      capi::ToShape(dims, num_dims, false);
  if (!shape.ok() || shape->num_elements() != tensor->shape.num_elements()) {
    return;
  }
  tensor->shape = *shape;
  if (tensor->tensor.has_buffer()) {
    tensor->tensor = tensor->tensor.WithShape(*std::move(shape));
  }
}

int TF_NumDims(const TF_Tensor* t) { return t ? t->shape.rank() : -1; }

int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) {
  if (dim_index < 0 || dim_index >= TF_NumDims(tensor)) return -1;
  return tensor->shape.dim(dim_index);
}

size_t TF_TensorByteSize(const TF_Tensor* t) { return t ? t->bytes : 0; }

void* TF_TensorData(const TF_Tensor* t) { return t ? t->data : nullptr; }

int64_t TF_TensorElementCount(const TF_Tensor* tensor) {
  return tensor ? tensor->shape.num_elements() : 0;
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type,
                          TF_Tensor* to, const int64_t* new_dims,
                          int num_new_dims, TF_Status* status) {
  capi::Into(status, [&] {
    return capi::Bitcast(from, type, to, new_dims, num_new_dims);
  });
}

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to,
                        TF_Status* status) {
  capi::Into(status, [&]() -> headrace::Status {
    HR_RETURN_IF_ERROR(capi::NotNull(from, "from"));
    HR_RETURN_IF_ERROR(capi::NotNull(to, "to"));
    tensorflow::TensorProto proto;
    HR_RETURN_IF_ERROR(
        capi::ReadProto(from->data, from->length, "Tensor", &proto));
    HR_ASSIGN_OR_RETURN(headrace::Tensor t, headrace::TensorFromProto(proto));
    return capi::SetTensor(to, std::move(t));
  });
}
