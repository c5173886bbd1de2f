// Tensors from JSON as inputs of models are given in it: on command lines and
// in files.
#pragma once

#include "base/text/json_value.h"
#include "tensor/tensor.h"

namespace headrace::command {

// The elements of nested lists as a tensor. {"b64": "..."} is a text of any
// bytes. InvalidArgument where lists of one level differ in length, or an
// element is no `dtype`; Unimplemented for dtypes that no text stands for.
StatusOr<Tensor> TensorFromJson(const JsonValue& value, DType dtype);

}  // namespace headrace::command
