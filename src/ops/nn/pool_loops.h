// The inner loops of pooling over channels, one set a level.
#pragma once

#include <cstdint>

namespace headrace {

// taps[i] are the pixels that a window sees, n > 0 of them.
struct PoolLoops {
  // y[c] = the largest (NaN where there is one), or `scale` times the sum, of
  // taps[i][c].
  void (*max)(const float* const* taps, int n, int64_t channels, float* y);
  void (*sum)(const float* const* taps, int n, int64_t channels, float scale,
              float* y);
  // Adds dy[c] to to[i][c] of the first tap that has the maximum.
  void (*max_back)(const float* const* taps, float* const* to, int n,
                   int64_t channels, const float* dy);
  // Adds scale * dy[c] to every to[i][c].
  void (*sum_back)(float* const* to, int n, int64_t channels, float scale,
                   const float* dy);
};

const PoolLoops& LoopsForPool();

}  // namespace headrace
