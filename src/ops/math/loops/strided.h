// Copies of strided views: what brings einsum's operands into order.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace headrace {

using Sizes = absl::InlinedVector<int64_t, 8>;

// to[i...] = from[i...] over all indices below `dims`; strides are in elements
// of `size` bytes (1, 2, 4, 8 or 16). Runs on several threads.
void CopyStrided(const Sizes& dims, int size, const void* from,
                 const Sizes& from_strides, void* to, const Sizes& to_strides);

// Row-major strides of `dims`.
Sizes DenseStrides(const Sizes& dims);

// The dimensions as one: true when they lie in memory like a single dimension,
// whose stride goes to *stride (1 when it has a single element).
bool Collapse(const Sizes& dims, const Sizes& strides, int64_t* stride);

}  // namespace headrace
