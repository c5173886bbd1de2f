#include "ops/nn/norm/batch_norm_loops.h"

namespace headrace::HR_LEVEL {
namespace {

void Scale(const float* x, int64_t rows, int64_t channels, const float* scale,
           const float* shift, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) y[c] = x[c] * scale[c] + shift[c];
  }
}

void Moments(const float* x, int64_t rows, int64_t channels, const float* mean,
             float* sum, float* squares) {
  for (int64_t r = 0; r < rows; ++r, x += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const float d = x[c] - mean[c];
      sum[c] += d;
      squares[c] += d * d;
    }
  }
}

void BackSums(const float* dy, const float* x, int64_t rows, int64_t channels,
              const float* mean, float* sum, float* dot) {
  for (int64_t r = 0; r < rows; ++r, x += channels, dy += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += dy[c];
      dot[c] += dy[c] * (x[c] - mean[c]);
    }
  }
}

void Back(const float* dy, const float* x, int64_t rows, int64_t channels,
          const float* mean, const float* a, const float* b, const float* d,
          float* dx) {
  for (int64_t r = 0; r < rows;
       ++r, x += channels, dy += channels, dx += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      dx[c] = a[c] * dy[c] + (b[c] * (x[c] - mean[c]) + d[c]);
    }
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const BatchNormLoops* BatchNorm<CpuLevel::HR_LEVEL>() {
  static constexpr BatchNormLoops loops = {Scale, Moments, BackSums, Back};
  return &loops;
}

}  // namespace headrace
