// The inner loops of reductions, one set a level of the instruction set.
//
// Sums add fixed blocks in a fixed tree whose shape depends on the lengths
// alone; maxima and minima hand NaNs on.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "tensor/dtype.h"

namespace headrace {

enum class Reduction : uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,
  kSumSquares,  // of absolute values
  kWideSum,     // integers in int64; others as kSum
};

// Columns of a strip, and rows that are summed one after the other: constants,
// so that the order of additions, and with it the bits, is the same on all
// processors.
inline constexpr int64_t kReduceStrip = 1024;
inline constexpr int64_t kReduceRows = 16;

struct ReduceLoops {
  // out[i] = reduction of x[i * n .. i * n + n), for i < count.
  void (*runs)(const void* x, int64_t n, int64_t count, void* out) = nullptr;
  // out[j] = reduction over i < rows of x[i * stride + j], for j < n <=
  // kReduceStrip. `scratch` holds 64 * kReduceStrip elements like `out`.
  void (*rows)(const void* x, int64_t stride, int64_t rows, int64_t n,
               void* out, void* scratch) = nullptr;
  // What `out` holds: float for half and bfloat16.
  DType out = DType::kInvalid;
};

// Null functions where the type has no such reduction.
ReduceLoops LoopsForReduction(Reduction r, DType dtype);

// What the files of a level give away.
template <CpuLevel kLevel>
ReduceLoops CommonReduction(Reduction r, DType dtype);

}  // namespace headrace
