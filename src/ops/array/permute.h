// Rearranging an array's axes.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

// y = x with its axes in another order: axis i of y is axis order[i] of x.
// `dims` are x's sizes, `order` a permutation of its axes (InvalidArgument if
// not), elements take `size` bytes: 1, 2, 4, 8 or 16 (Unimplemented
// otherwise). x and y must not overlap. Works on all threads.
Status Permute(const void* x, void* y, absl::Span<const int64_t> dims,
               absl::Span<const int32_t> order, int size);

}  // namespace headrace
