#include "ops/nn/softmax_loops.h"

#include "base/numbers/double_math.h"
#include "base/numbers/vector_math.h"
#include "ops/math/loops/float_math_512.h"

namespace headrace::HR_LEVEL {
namespace {

// The same lanes on every level of the instruction set: the order of additions
// decides the bits.
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
      // A NaN wins wherever it stands, without a branch.
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

#if defined(__AVX512F__)

// The largest element; NaN when there is one.
HR_VECTOR float MaxOfRow512(const float* x, int64_t n) {
  const __m512 least = _mm512_set1_ps(-__builtin_inff());
  __m512 a = least, b = least, c = least, d = least;
  __mmask16 nans = 0;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m512 p = _mm512_loadu_ps(x + i), q = _mm512_loadu_ps(x + i + 16);
    const __m512 r = _mm512_loadu_ps(x + i + 32);
    const __m512 s = _mm512_loadu_ps(x + i + 48);
    // A pair is unordered when either is a NaN.
    // The maximum instruction drops a NaN in its first operand, so that NaNs
    // are looked for apart.
    nans |= _mm512_cmp_ps_mask(p, q, _CMP_UNORD_Q);
    nans |= _mm512_cmp_ps_mask(r, s, _CMP_UNORD_Q);
    a = _mm512_max_ps(a, p);
    b = _mm512_max_ps(b, q);
    c = _mm512_max_ps(c, r);
    d = _mm512_max_ps(d, s);
  }
  for (; i < n; i += 16) {
    // Lanes beyond the end hold -infinity and change nothing.
    const __m512 p = _mm512_mask_loadu_ps(least, FirstLanes(n - i), x + i);
    nans |= _mm512_cmp_ps_mask(p, p, _CMP_UNORD_Q);
    a = _mm512_max_ps(a, p);
  }
  if (nans) return __builtin_nanf("");
  return _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d)));
}

// The lanes of SumOfRow, added as there.
HR_VECTOR float SumOfLanes(__m512 low, __m512 high) {
  // In halves: 32, 16, 8, 4, 2 lanes, as SumOfRow joins them.
  const __m512 s = _mm512_add_ps(low, high);
  const __m256 t =
      _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
  const __m128 u =
      _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));
  const __m128 v = _mm_add_ps(u, _mm_movehl_ps(u, u));
  return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));
}

// The exponentials are summed as they are made, in SumOfRow's order.
template <>
float ExpRow(const float* x, float* y, int64_t n, float* max) {
  *max = MaxOfRow512(x, n);
  const __m512 top = _mm512_set1_ps(*max);
  float total = 0;
  for (int64_t i = 0; i < n; i += 1024) {
    const int64_t end = n - i < 1024 ? n : i + 1024;
    __m512 low = _mm512_setzero_ps(), high = low;
    int64_t p = i;
    for (; p + 32 <= end; p += 32) {
      const __m512 a = Exp(_mm512_sub_ps(_mm512_loadu_ps(x + p), top));
      const __m512 b = Exp(_mm512_sub_ps(_mm512_loadu_ps(x + p + 16), top));
      _mm512_storeu_ps(y + p, a);
      _mm512_storeu_ps(y + p + 16, b);
      low = _mm512_add_ps(low, a);
      high = _mm512_add_ps(high, b);
    }
    // The rest fills low's lanes first, then high's, as the lanes of SumOfRow
    // stand.
    for (__m512* lanes = &low; p < end; p += 16, lanes = &high) {
      const __mmask16 rest = FirstLanes(end - p);
      const __m512 a =
          Exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(rest, x + p), top));
      _mm512_mask_storeu_ps(y + p, rest, a);
      *lanes = _mm512_mask_add_ps(*lanes, rest, *lanes, a);
    }
    total += SumOfLanes(low, high);
  }
  return total;
}

#endif

template <typename T>
void Softmax(const T* x, T* y, int64_t rows, int64_t n, bool log) {
  constexpr int64_t kPiece = 1024;
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    if (!log) {
      T max;
      // One division a row: products cost a fraction of divisions.
      const T scale = 1 / ExpRow(x, y, n, &max);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) y[i] *= scale;
      continue;
    }
    const T max = MaxOfRow(x, n);
    // The exponentials are only summed: they never leave the first cache.
    T sum = 0, piece[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t m = n - i < kPiece ? n - i : kPiece;
      ExpOfRow(x + i, piece, m, max);
      sum += SumOfRow(piece, m);
    }
    const T log_sum = LogOf(sum);
#pragma GCC ivdep
    // In this order: log_sum is small, the difference exact or nearly so.
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - max) - log_sum;
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const SoftmaxLoops<float>* FloatSoftmax<CpuLevel::HR_LEVEL>() {
  static constexpr SoftmaxLoops<float> loops = {Softmax<float>, ExpRow<float>};
  return &loops;
}
template <>
const SoftmaxLoops<double>* DoubleSoftmax<CpuLevel::HR_LEVEL>() {
  static constexpr SoftmaxLoops<double> loops = {Softmax<double>,
                                                 ExpRow<double>};
  return &loops;
}

}  // namespace headrace
