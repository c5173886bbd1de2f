#include "ops/linalg/factor_loops.h"

namespace headrace::HR_LEVEL {
namespace {

template <typename T>
void Panel(T* a, int64_t stride, int64_t rows, int64_t size, int64_t* pivots) {
  const int64_t steps = rows < size ? rows : size;
  for (int64_t j = 0; j < steps; ++j) {
    int64_t best = j;
    T most = a[j * stride + j];
    if (most < 0) most = -most;
    for (int64_t i = j + 1; i < rows; ++i) {
      T v = a[i * stride + j];
      if (v < 0) v = -v;
      if (v > most) {
        most = v;
        best = i;
      }
    }
    pivots[j] = best;
    T* const top = a + j * stride;
    if (best != j) {
      T* const other = a + best * stride;
      for (int64_t k = 0; k < size; ++k) {
        const T kept = top[k];
        top[k] = other[k];
        other[k] = kept;
      }
    }
    const T pivot = top[j];
    if (pivot == T(0)) continue;
    for (int64_t i = j + 1; i < rows; ++i) {
      T* const row = a + i * stride;
      const T v = row[j] /= pivot;
#pragma GCC ivdep
      for (int64_t k = j + 1; k < size; ++k) row[k] -= v * top[k];
    }
  }
}

// Columns [0, width) of x, so many that they stay in the first cache.
template <typename T>
void SubstituteStrip(const T* t, int64_t t_stride, int64_t n, T* x,
                     int64_t x_stride, int64_t width, bool forward, bool unit) {
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = forward ? s : n - 1 - s;
    const int64_t end = forward ? i : n;
    int64_t p = forward ? 0 : i + 1;
    T* const to = x + i * x_stride;
    const T* const row = t + i * t_stride;
    // Four rows at once, so that a row of the solution is loaded and stored
    // once for four multiplications.
    for (; p + 4 <= end; p += 4) {
      const T v0 = row[p], v1 = row[p + 1], v2 = row[p + 2], v3 = row[p + 3];
      const T* const x0 = x + p * x_stride;
      const T* const x1 = x0 + x_stride;
      const T* const x2 = x1 + x_stride;
      const T* const x3 = x2 + x_stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        to[j] = to[j] - v0 * x0[j] - v1 * x1[j] - v2 * x2[j] - v3 * x3[j];
      }
    }
    for (; p < end; ++p) {
      const T v = row[p];
      const T* const from = x + p * x_stride;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) to[j] -= v * from[j];
    }
    if (unit) continue;
    const T pivot = row[i];
    for (int64_t j = 0; j < width; ++j) to[j] /= pivot;
  }
}

template <typename T>
void Substitute(const T* t, int64_t t_stride, int64_t n, T* x, int64_t x_stride,
                int64_t m, bool forward, bool unit) {
  // Rows of 512 bytes: 48 of them, a panel, take 24 KiB of the first cache.
  constexpr int64_t kStrip = 512 / sizeof(T);
  for (int64_t j = 0; j < m; j += kStrip) {
    SubstituteStrip(t, t_stride, n, x + j, x_stride,
                    m - j < kStrip ? m - j : kStrip, forward, unit);
  }
}

template <typename T>
constexpr FactorLoops<T> kLoops = {Panel<T>, Substitute<T>};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const FactorLoops<float>* FactorFloat<CpuLevel::HR_LEVEL>() {
  return &kLoops<float>;
}
template <>
const FactorLoops<double>* FactorDouble<CpuLevel::HR_LEVEL>() {
  return &kLoops<double>;
}

}  // namespace headrace
