#include "ops/sparse/csr/rows_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// kBytes of neighbouring elements, and the same at any address.
template <typename T, int kBytes>
struct Strip {
  typedef T value __attribute__((vector_size(kBytes)));
  typedef T anywhere __attribute__((vector_size(kBytes), aligned(sizeof(T))));
  static constexpr int64_t kLanes = kBytes / sizeof(T);
};

// Entries [i, end) of one row: kCount strips of its sums.
template <typename T, int kBytes, int kCount>
[[gnu::always_inline]] inline void SumStrips(const int32_t* cols, const T* x,
                                             int32_t i, int32_t end, const T* b,
                                             int64_t n, T* y) {
  using S = Strip<T, kBytes>;
  typename S::value sums[kCount] = {};
  for (; i < end; ++i) {
    const T* from = b + cols[i] * n;
    for (int k = 0; k < kCount; ++k) {
      sums[k] += x[i] * *reinterpret_cast<const typename S::anywhere*>(
                            from + k * S::kLanes);
    }
  }
  for (int k = 0; k < kCount; ++k) {
    *reinterpret_cast<typename S::anywhere*>(y + k * S::kLanes) = sums[k];
  }
}

template <typename T>
void Rows(const int32_t* rows, const int32_t* cols, const T* x, int64_t begin,
          int64_t end, const T* b, int64_t n, T* y) {
  constexpr int64_t kLanes = Strip<T, 64>::kLanes;
  for (int64_t r = begin; r < end; ++r) {
    const int32_t from = rows[r], to = rows[r + 1];
    T* out = y + r * n;
    int64_t j = 0;
    for (; j + 4 * kLanes <= n; j += 4 * kLanes) {
      SumStrips<T, 64, 4>(cols, x, from, to, b + j, n, out + j);
    }
    for (; j + kLanes <= n; j += kLanes) {
      SumStrips<T, 64, 1>(cols, x, from, to, b + j, n, out + j);
    }
    for (; j + kLanes / 4 <= n; j += kLanes / 4) {
      SumStrips<T, 16, 1>(cols, x, from, to, b + j, n, out + j);
    }
    for (; j < n; ++j) {
      T sum = 0;
      for (int32_t i = from; i < to; ++i) sum += x[i] * b[cols[i] * n + j];
      out[j] = sum;
    }
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
CsrRowsLoop<float> FloatCsrRows<CpuLevel::HR_LEVEL>() {
  return Rows<float>;
}
template <>
CsrRowsLoop<double> DoubleCsrRows<CpuLevel::HR_LEVEL>() {
  return Rows<double>;
}

}  // namespace headrace
