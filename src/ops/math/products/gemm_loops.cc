#include "ops/math/products/gemm_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

// A block of C is kRows x 2 vectors in registers, with two more for B and one
// for A: 14 x 2 of the 32 registers of AVX-512, 6 x 2 of the 16 of AVX and SSE.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRows = 14;
#elif defined(__AVX__)
constexpr int kBytes = 32, kRows = 6;
#else
constexpr int kBytes = 16, kRows = 6;
#endif

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
  typedef T unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T))));
  static constexpr int kLanes = kBytes / sizeof(T);
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
constexpr int kLanes = VectorOf<T>::kLanes;
template <typename T>
constexpr int kWidth = 2 * kLanes<T>;

template <typename T>
HR_INLINE Vec<T> Load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <typename T>
HR_INLINE void Store(T* p, Vec<T> v) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = v;
}

// c + a * b.
HR_INLINE Vec<float> Fma(float a, Vec<float> b, Vec<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
#else
  return c + a * b;
#endif
}
HR_INLINE Vec<double> Fma(double a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(_mm512_set1_pd(a), b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(_mm256_set1_pd(a), b, c);
#else
  return c + a * b;
#endif
}
HR_INLINE Vec<float> Fma(Vec<float> a, Vec<float> b, Vec<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return c + a * b;
#endif
}
HR_INLINE Vec<double> Fma(Vec<double> a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#else
  return c + a * b;
#endif
}

// kUnitCol: a_col is 1 (rows of A lie in memory), else a_row is 1. kFetch:
// `next` counts.
template <typename T, int R, bool kUnitCol, bool kFetch>
void Tile(const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row,
          T* c, int64_t c_row, int cols, int64_t k, bool add,
          const char* next) {
  constexpr int L = kLanes<T>;
  Vec<T> acc[R][2];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) acc[i][0] = acc[i][1] = Vec<T>{};
  for (int64_t p = 0; p < k; ++p) {
    // Into the second cache: the first is full of what the tile reads.
    if constexpr (kFetch) __builtin_prefetch(next + p * 64, 0, 2);
    const Vec<T> b0 = Load(b), b1 = Load(b + L);
// Unrolled, so that the sums are registers and not memory.
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const T x = kUnitCol ? a[i * a_row] : a[i];
      acc[i][0] = Fma(x, b0, acc[i][0]);
      acc[i][1] = Fma(x, b1, acc[i][1]);
    }
    a += kUnitCol ? 1 : a_col;
    b += b_row;
  }
  // Whole tiles are stored as vectors; the last columns one by one.
  if (cols == 2 * L) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      T* to = c + i * c_row;
      if (add) {
        acc[i][0] += Load(to);
        acc[i][1] += Load(to + L);
      }
      Store(to, acc[i][0]);
      Store(to + L, acc[i][1]);
    }
    return;
  }
  T row[2 * L];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    T* to = c + i * c_row;
    Store(row, acc[i][0]);
    Store(row + L, acc[i][1]);
    for (int j = 0; j < cols; ++j) to[j] = add ? to[j] + row[j] : row[j];
  }
}

template <typename T>
using TileFn = void (*)(const T*, int64_t, int64_t, const T*, int64_t, T*,
                        int64_t, int, int64_t, bool, const char*);
template <typename T, bool kUnitCol, bool kFetch, int... R>
struct TileTable {
  static constexpr TileFn<T> kTiles[] = {&Tile<T, R, kUnitCol, kFetch>...};
};
#if defined(__AVX512F__)
template <typename T, bool kUnitCol, bool kFetch>
using Tiles = TileTable<T, kUnitCol, kFetch, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                        12, 13, 14>;
#else
template <typename T, bool kUnitCol, bool kFetch>
using Tiles = TileTable<T, kUnitCol, kFetch, 1, 2, 3, 4, 5, 6>;
#endif

template <typename T, bool kFetch>
HR_INLINE void OneTile(const T* a, int64_t a_row, int64_t a_col, const T* b,
                       int64_t b_row, T* c, int64_t c_row, int rows, int cols,
                       int64_t k, bool add, const void* next) {
  const TileFn<T> f = a_col == 1 ? Tiles<T, true, kFetch>::kTiles[rows - 1]
                                 : Tiles<T, false, kFetch>::kTiles[rows - 1];
  f(a, a_row, a_col, b, b_row, c, c_row, cols, k, add,
    static_cast<const char*>(next));
}

template <typename T>
void AnyTile(const T* a, int64_t a_row, int64_t a_col, const T* b,
             int64_t b_row, T* c, int64_t c_row, int rows, int cols, int64_t k,
             bool add) {
  OneTile<T, false>(a, a_row, a_col, b, b_row, c, c_row, rows, cols, k, add,
                    nullptr);
}

template <typename T>
void TileAndFetch(const T* a, int64_t a_row, int64_t a_col, const T* b,
                  int64_t b_row, T* c, int64_t c_row, int rows, int cols,
                  int64_t k, bool add, const void* next) {
  OneTile<T, true>(a, a_row, a_col, b, b_row, c, c_row, rows, cols, k, add,
                   next);
}

typedef float Four __attribute__((vector_size(16)));
typedef float FourAnywhere __attribute__((vector_size(16), aligned(4)));

// A 4 x 4 block turned over.
HR_INLINE void PackFour(const float* from, int64_t row, float* to, int stride) {
  Four r[4];
  for (int i = 0; i < 4; ++i) {
    r[i] = *reinterpret_cast<const FourAnywhere*>(from + i * row);
  }
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Four c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Four d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  auto put = [&](int p, Four v) {
    *reinterpret_cast<FourAnywhere*>(to + p * stride) = v;
  };
  put(0, __builtin_shufflevector(a, c, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(a, c, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(b, d, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(b, d, 2, 3, 6, 7));
}
HR_INLINE void PackFour(const double* from, int64_t row, double* to,
                        int stride) {
  for (int i = 0; i < 4; ++i) {
    for (int p = 0; p < 4; ++p) to[p * stride + i] = from[i * row + p];
  }
}

template <typename T>
void Pack(const T* from, int64_t row, int64_t col, int n, int64_t k, T* to,
          int stride) {
  // Columns that lie side by side already: copied as vectors.
  if (row == 1 && n == kWidth<T> && stride == n) {
    for (int64_t p = 0; p < k; ++p, from += col, to += stride) {
      Store(to, Load(from));
      Store(to + kLanes<T>, Load(from + kLanes<T>));
    }
    return;
  }
  int i = 0;
  // Rows lie in memory: turned round four by four, as single numbers would
  // touch a line of the cache each.
  if (col == 1) {
    for (; i + 4 <= n; i += 4) {
      int64_t p = 0;
      for (; p + 4 <= k; p += 4) {
        PackFour(from + i * row + p, row, to + p * stride + i, stride);
      }
      for (; p < k; ++p) {
        for (int e = i; e < i + 4; ++e) to[p * stride + e] = from[e * row + p];
      }
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int e = i; e < n; ++e) to[p * stride + e] = from[e * row + p * col];
    // The rest of the stride is cleared: tiles read it, and what it holds must
    // not be a NaN.
    for (int e = n; e < stride; ++e) to[p * stride + e] = 0;
  }
}

// Rows of B go by in eights, so that y is read and written seldom.
template <typename T>
void RowTimesMatrix(const T* x, int64_t x_stride, const T* b, int64_t b_row,
                    int64_t k, T* y, int64_t n) {
  for (int64_t j = 0; j < n; ++j) y[j] = 0;
  constexpr int L = kLanes<T>;
  int64_t p = 0;
  for (; p + 8 <= k; p += 8, b += 8 * b_row) {
    T w[8];
    for (int e = 0; e < 8; ++e) w[e] = x[(p + e) * x_stride];
    int64_t j = 0;
    for (; j + L <= n; j += L) {
      // Two sums, so that one addition need not wait for the one before.
      Vec<T> s = Load(y + j), t = Vec<T>{};
#pragma GCC unroll 4
      for (int e = 0; e < 4; ++e) s = Fma(w[e], Load(b + e * b_row + j), s);
#pragma GCC unroll 4
      for (int e = 4; e < 8; ++e) t = Fma(w[e], Load(b + e * b_row + j), t);
      Store(y + j, s + t);
    }
    for (; j < n; ++j) {
      T s = y[j];
      for (int e = 0; e < 8; ++e) s += w[e] * b[e * b_row + j];
      y[j] = s;
    }
  }
  for (; p < k; ++p, b += b_row) {
    const T w = x[p * x_stride];
    for (int64_t j = 0; j < n; ++j) y[j] += w * b[j];
  }
}

template <typename T>
HR_INLINE T SumLanes(Vec<T> v) {
  T lanes[kLanes<T>];
  Store(lanes, v);
#pragma GCC unroll 4
  // In halves: the order of the additions does not depend on the compiler.
  for (int h = kLanes<T> / 2; h > 0; h /= 2) {
    for (int i = 0; i < h; ++i) lanes[i] += lanes[i + h];
  }
  return lanes[0];
}

template <typename T, int N>
HR_INLINE void SomeDots(const T* x, const T* b, int64_t b_col, int64_t k,
                        T* y) {
  constexpr int L = kLanes<T>;
  Vec<T> s[N][2];
#pragma GCC unroll 8
  for (int e = 0; e < N; ++e) s[e][0] = s[e][1] = Vec<T>{};
  int64_t p = 0;
  for (; p + 2 * L <= k; p += 2 * L) {
    // Two sums for each dot, see RowTimesMatrix.
    const Vec<T> x0 = Load(x + p), x1 = Load(x + p + L);
#pragma GCC unroll 8
    for (int e = 0; e < N; ++e) {
      s[e][0] = Fma(x0, Load(b + e * b_col + p), s[e][0]);
      s[e][1] = Fma(x1, Load(b + e * b_col + p + L), s[e][1]);
    }
  }
#pragma GCC unroll 8
  for (int e = 0; e < N; ++e) {
    T t = SumLanes<T>(s[e][0] + s[e][1]);
    for (int64_t q = p; q < k; ++q) t += x[q] * b[e * b_col + q];
    y[e] = t;
  }
}

template <typename T>
void Dots(const T* x, const T* b, int64_t b_col, int64_t k, T* y, int64_t n) {
  int64_t j = 0;
  // Four dots share the loads of x.
  for (; j + 4 <= n; j += 4) SomeDots<T, 4>(x, b + j * b_col, b_col, k, y + j);
  for (; j < n; ++j) SomeDots<T, 1>(x, b + j * b_col, b_col, k, y + j);
}

constexpr int kSmallDepth = 32;

// The first n lanes; the others are 0 or stay what they were.
template <typename T>
HR_INLINE Vec<T> LoadFirst(const T* p, int n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    // Lanes beyond n are not read: they may lie past the end.
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
  } else {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
  }
#else
  if (n == kLanes<T>) return Load(p);
  Vec<T> v{};
  for (int j = 0; j < n; ++j) v[j] = p[j];
  return v;
#endif
}
template <typename T>
HR_INLINE void StoreFirst(T* p, Vec<T> v, int n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
  } else {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
  }
#else
  if (n == kLanes<T>) return Store(p, v);
  for (int j = 0; j < n; ++j) p[j] = v[j];
#endif
}

template <typename T>
void Small(const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row,
           int64_t b_col, T* c, int64_t c_row, int64_t m, int n, int k) {
  // All of B in registers or the first cache, a vector a row.
  Vec<T> rows[kSmallDepth];
  for (int p = 0; p < k; ++p) {
    if (b_col == 1) {
      rows[p] = LoadFirst(b + p * b_row, n);
      continue;
    }
    T row[kLanes<T>] = {};
    for (int j = 0; j < n; ++j) row[j] = b[p * b_row + j * b_col];
    rows[p] = Load(row);
  }
  for (int64_t i = 0; i < m; ++i) {
    const T* from = a + i * a_row;
    Vec<T> sum{};
    for (int p = 0; p < k; ++p) sum = Fma(from[p * a_col], rows[p], sum);
    StoreFirst(c + i * c_row, sum, n);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const GemmLoops<float>* FloatGemm<CpuLevel::HR_LEVEL>() {
  static constexpr GemmLoops<float> loops = {
      kRows,       kWidth<float>,  kLanes<float>,
      kSmallDepth, AnyTile<float>, TileAndFetch<float>,
      Pack<float>, Small<float>,   RowTimesMatrix<float>,
      Dots<float>};
  return &loops;
}
template <>
const GemmLoops<double>* DoubleGemm<CpuLevel::HR_LEVEL>() {
  static constexpr GemmLoops<double> loops = {
      kRows,        kWidth<double>,  kLanes<double>,
      kSmallDepth,  AnyTile<double>, nullptr,
      Pack<double>, Small<double>,   RowTimesMatrix<double>,
      Dots<double>};
  return &loops;
}

}  // namespace headrace
