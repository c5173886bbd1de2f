#include "ops/nn/softmax_loops.h"

#include "base/double_math.h"
#include "base/vector_math.h"

namespace headrace::HR_LEVEL {
namespace {

constexpr int kLanes = 32;

// The largest element; NaN when there is one.
template <typename T>
T MaxOfRow(const T* x, int64_t n) {
  T lanes[kLanes];
  for (int j = 0; j < kLanes; ++j) lanes[j] = -__builtin_inf();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) {
      const T v = x[i + j];
      lanes[j] = (v > lanes[j]) | (v != v) ? v : lanes[j];
    }
  }
  for (int j = 0; i + j < n; ++j) {
    const T v = x[i + j];
    lanes[j] = (v > lanes[j]) | (v != v) ? v : lanes[j];
  }
  T m = lanes[0];
  for (int j = 1; j < kLanes; ++j) {
    m = (lanes[j] > m) | (lanes[j] != lanes[j]) ? lanes[j] : m;
  }
  return m;
}

// Sums blocks of 1024 in lanes, the blocks one after the other.
template <typename T>
T SumOfRow(const T* x, int64_t n) {
  T total = 0;
  for (int64_t i = 0; i < n; i += 1024) {
    const int64_t end = n - i < 1024 ? n : i + 1024;
    T lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = 0;
    int64_t p = i;
    for (; p + kLanes <= end; p += kLanes) {
      for (int j = 0; j < kLanes; ++j) lanes[j] += x[p + j];
    }
    for (int j = 0; p + j < end; ++j) lanes[j] += x[p + j];
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    }
    total += lanes[0];
  }
  return total;
}

void ExpOfRow(const float* x, float* y, int64_t n, float max) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Exp(x[i] - max);
}
void ExpOfRow(const double* x, double* y, int64_t n, double max) {
  // By whole blocks: the library's vector form may differ from its scalar one.
  double block[16];
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t m = n - i < 16 ? n - i : 16;
    for (int j = 0; j < 16; ++j) block[j] = j < m ? x[i + j] - max : 0.0;
    for (int j = 0; j < 16; ++j) block[j] = exp(block[j]);
    for (int64_t j = 0; j < m; ++j) y[i + j] = block[j];
  }
}

HR_VECTOR float LogOf(float x) { return Log(x); }
HR_VECTOR double LogOf(double x) { return __builtin_log(x); }

template <typename T>
T ExpRow(const T* x, T* y, int64_t n, T* max) {
  *max = MaxOfRow(x, n);
  ExpOfRow(x, y, n, *max);
  return SumOfRow(y, n);
}

template <typename T>
void Softmax(const T* x, T* y, int64_t rows, int64_t n, bool log) {
  constexpr int64_t kPiece = 1024;
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    if (!log) {
      T max;
      const T scale = 1 / ExpRow(x, y, n, &max);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] *= scale;
      continue;
    }
    const T max = MaxOfRow(x, n);
    T sum = 0, piece[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = n - i < kPiece ? n - i : kPiece;
      ExpOfRow(x + i, piece, m, max);
      sum += SumOfRow(piece, m);
    }
    const T log_sum = LogOf(sum);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - max) - log_sum;
  }
}

}  // namespace

const SoftmaxLoops<float>* FloatSoftmax() {
  static constexpr SoftmaxLoops<float> loops = {Softmax<float>, ExpRow<float>};
  return &loops;
}
const SoftmaxLoops<double>* DoubleSoftmax() {
  static constexpr SoftmaxLoops<double> loops = {Softmax<double>,
                                                 ExpRow<double>};
  return &loops;
}

}  // namespace headrace::HR_LEVEL
