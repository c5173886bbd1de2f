// What strings in tensors hold beside the tensors' own memory.
#pragma once

#include "tensor/tensor.h"

namespace headrace {

// Counts the strings of `t` against the sandboxes that its memory counts
// against; ResourceExhausted beyond a limit. OK for tensors of other dtypes.
Status CountStringMemory(const Tensor& t);

namespace internal {
// The block that a buffer with these data and so many bytes of them lies in.
const void* BlockOfData(const void* data, size_t bytes);
}  // namespace internal

}  // namespace headrace
