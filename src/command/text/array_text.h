// Tensors as NumPy prints arrays.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace headrace::command {

// As Python's str() of the array: long ones with "..." between the first and
// last three of each dimension. The tensor has a buffer.
std::string ArrayText(const Tensor& tensor);

}  // namespace headrace::command
