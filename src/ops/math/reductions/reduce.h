// Reduces tensors over any set of axes.
#pragma once

#include "absl/types/span.h"
#include "base/status.h"
#include "ops/math/reductions/reduce_loops.h"
#include "tensor/tensor.h"

namespace headrace {

// Reduces `in` over the axes where `reduced` is true (one entry a dimension)
// into `out`, the kept elements in order, of LoopsForReduction(r, dtype).out.
// Runs on several threads; the bits do not depend on how many.
Status Reduce(Reduction r, const Tensor& in, absl::Span<const bool> reduced,
              void* out);

// The same for a tensor seen as [outer, n, inner], reduced over the middle.
Status ReduceMiddle(Reduction r, DType dtype, const void* in, int64_t outer,
                    int64_t n, int64_t inner, void* out);

// True where [outer, n] over n is one call of ReduceLoops::runs.
bool IsOneRun(int64_t outer, int64_t n);

}  // namespace headrace
