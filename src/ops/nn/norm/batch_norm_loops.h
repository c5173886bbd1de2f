// The inner loops of batch normalisation over channels, one set a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// Rows of `channels` elements; vectors have `channels` elements.
struct BatchNormLoops {
  // y = x * scale + shift.
  void (*scale)(const float* x, int64_t rows, int64_t channels,
                const float* scale, const float* shift, float* y);
  // sum[c] += x - mean, squares[c] += (x - mean)^2 over the rows.
  void (*moments)(const float* x, int64_t rows, int64_t channels,
                  const float* mean, float* sum, float* squares);
  // sum[c] += dy, dot[c] += dy * (x - mean).
  void (*back_sums)(const float* dy, const float* x, int64_t rows,
                    int64_t channels, const float* mean, float* sum,
                    float* dot);
  // dx = a * dy + b * (x - mean) + d.
  void (*back)(const float* dy, const float* x, int64_t rows, int64_t channels,
               const float* mean, const float* a, const float* b,
               const float* d, float* dx);
};

const BatchNormLoops& LoopsForBatchNorm();

// What the files of a level give away.
template <CpuLevel kLevel>
const BatchNormLoops* BatchNorm();

}  // namespace headrace
