// The inner loops of pooling over channels, one set a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A row of pixels with few channels, pooled along itself: windows of `size`
// pixels, the first `before` pixels before the row.
struct NarrowRow {
  int64_t channels, in, out, size, stride, before;
};

// taps[i] are the pixels that a window sees, n > 0 of them.
struct PoolLoops {
  // y[c] = the largest (NaN where there is one), or `scale` times the sum, of
  // taps[i][c].
  void (*max)(const float* const* taps, int n, int64_t channels, float* y);
  void (*sum)(const float* const* taps, int n, int64_t channels, float scale,
              float* y);
  // One row of outputs of pixels with few channels, whole: y = the largest, or
  // the mean, of what the windows see of `rows`, `n` of them (perhaps none).
  // `room` takes a row.
  void (*max_row)(const float* const* rows, int n, const NarrowRow& r,
                  float* room, float* y);
  void (*mean_row)(const float* const* rows, int n, const NarrowRow& r,
                   float* room, float* y);
  // Adds dy[c] to to[i][c] of the first tap that has the maximum.
  void (*max_back)(const float* const* taps, float* const* to, int n,
                   int64_t channels, const float* dy);
  // Adds scale * dy[c] to every to[i][c].
  void (*sum_back)(float* const* to, int n, int64_t channels, float scale,
                   const float* dy);
};

const PoolLoops& LoopsForPool();

// What the files of a level give away.
template <CpuLevel kLevel>
const PoolLoops* Pool();

}  // namespace headrace
