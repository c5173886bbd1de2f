// Tensors of the C interface. Those of numbers are the library's; strings lie
// in them as TF_TStrings, and handles as bytes.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensorflow/c/tf_tensor.h"

namespace headrace::capi {
class Strings;  // counted memory that holds TF_TStrings
}

struct TF_Tensor {
  headrace::DType dtype = headrace::DType::kInvalid;
  headrace::Shape shape;
  void* data = nullptr;
  size_t bytes = 0;
  // Of all types but strings: what `data` is of, or, for a handle, stands for.
  headrace::Tensor tensor;
  std::shared_ptr<headrace::capi::Strings> strings;
  std::shared_ptr<std::string> handle;  // a ResourceHandleProto
};

namespace headrace::capi {

// Numbers share the memory, strings are copied. InvalidArgument for null.
StatusOr<Tensor> ToTensor(const TF_Tensor* t);
// A new TF_Tensor, the caller's.
StatusOr<TF_Tensor*> FromTensor(Tensor t);
// The same into one that is there.
Status SetTensor(TF_Tensor* out, Tensor t);

// The handle that the bytes of a ResourceHandleProto name, to be looked up.
StatusOr<Tensor> HandleFromBytes(StringView bytes);

// A type as the library has it; InvalidArgument for others.
StatusOr<DType> ToDType(int type);
// Sizes as a shape; num_dims -1 is an unknown rank where that is allowed.
StatusOr<Shape> ToShape(const int64_t* dims, int num_dims, bool allow_unknown);

}  // namespace headrace::capi
