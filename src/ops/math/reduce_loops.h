// The inner loops of reductions, one set a level of the instruction set.
//
// Sums of floats add fixed blocks in a fixed tree, whose shape depends on the
// lengths alone.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace headrace {

enum class Reduction : uint8_t { kSum, kProd, kMax, kMin, kSumSquares };

// Reduces runs of elements (a run: neighbours in memory).
//   out[i] = reduction of x[i * n .. i * n + n) for i < count
using ReduceRunsFn = void (*)(const void* x, int64_t n, int64_t count,
                              void* out);
// Reduces rows: out[j] = reduction over i < rows of x[i * stride + j], j < n.
// `scratch` holds ReduceScratch(n) elements of the output's type.
using ReduceRowsFn = void (*)(const void* x, int64_t stride, int64_t rows,
                              int64_t n, void* out, void* scratch);
inline int64_t ReduceScratch(int64_t n) { return 64 * n; }

struct ReduceLoops {
  ReduceRunsFn runs = nullptr;
  ReduceRowsFn rows = nullptr;
  // What `out` holds: float for half and bfloat16, int64 for the mean of
  // integers is the caller's matter; else the input's type.
  DType out = DType::kInvalid;
};

// Null functions where the type has no such reduction.
ReduceLoops LoopsForReduction(Reduction r, DType dtype);

}  // namespace headrace
