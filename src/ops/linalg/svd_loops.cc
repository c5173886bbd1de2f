#include "ops/linalg/svd_loops.h"

// All functions that take vectors are inlined, so no ABI is met.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

template <typename T>
struct VectorOf {
  typedef T type __attribute__((vector_size(64)));
  typedef T anywhere __attribute__((vector_size(64), aligned(sizeof(T))));
};
template <typename T>
using Vec = typename VectorOf<T>::type;
template <typename T>
constexpr int64_t kLanes = 64 / sizeof(T);

template <typename T>
HR_INLINE Vec<T> Load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::anywhere*>(p);
}
template <typename T>
HR_INLINE void Store(T* p, const Vec<T>& v) {
  *reinterpret_cast<typename VectorOf<T>::anywhere*>(p) = v;
}

template <typename T>
HR_INLINE T SumOf(const Vec<T>& v) {
  T part[kLanes<T>];
  Store<T>(part, v);
  // Halves are added to halves, an order that does not depend on the level's
  // register width.
  for (int64_t n = kLanes<T> / 2; n > 0; n /= 2) {
    for (int64_t i = 0; i < n; ++i) part[i] += part[i + n];
  }
  return part[0];
}

template <typename T>
void RowsBy(const T* v, const T* a, int64_t stride, int64_t rows, T* y,
            int64_t length) {
  for (int64_t j = 0; j < length; ++j) y[j] = 0;
  int64_t i = 0;
  // Four rows at once, so that y is loaded and stored once for four products.
  for (; i + 4 <= rows; i += 4, a += 4 * stride) {
    const T v0 = v[i], v1 = v[i + 1], v2 = v[i + 2], v3 = v[i + 3];
    for (int64_t j = 0; j < length; j += kLanes<T>) {
      Vec<T> s = Load(y + j) + v0 * Load(a + j);
      s += v1 * Load(a + stride + j);
      s += v2 * Load(a + 2 * stride + j);
      s += v3 * Load(a + 3 * stride + j);
      Store<T>(y + j, s);
    }
  }
  for (; i < rows; ++i, a += stride) {
    for (int64_t j = 0; j < length; j += kLanes<T>) {
      Store<T>(y + j, Load(y + j) + v[i] * Load(a + j));
    }
  }
}

template <typename T>
void Update(T* row, T f, const T* w, T t, const T* u, int64_t length) {
  Vec<T> sum{};
  for (int64_t j = 0; j < length; j += kLanes<T>) {
    // The left reflection changes the row and the product with u is taken in
    // the same pass.
    const Vec<T> r = Load(row + j) - f * Load(w + j);
    sum += r * Load(u + j);
    Store<T>(row + j, r);
  }
  const T k = t * SumOf<T>(sum);
  for (int64_t j = 0; j < length; j += kLanes<T>) {
    Store<T>(row + j, Load(row + j) - k * Load(u + j));
  }
}

template <typename T, int kRows>
HR_INLINE void ReflectRows(T* a, int64_t stride, T t, const T* v,
                           int64_t length) {
  Vec<T> sum[kRows] = {};
  for (int64_t j = 0; j < length; j += kLanes<T>) {
    const Vec<T> x = Load(v + j);
    for (int r = 0; r < kRows; ++r) sum[r] += x * Load(a + r * stride + j);
  }
  T k[kRows];
  for (int r = 0; r < kRows; ++r) k[r] = t * SumOf<T>(sum[r]);
  for (int64_t j = 0; j < length; j += kLanes<T>) {
    const Vec<T> x = Load(v + j);
    for (int r = 0; r < kRows; ++r) {
      T* to = a + r * stride + j;
      Store<T>(to, Load(to) - k[r] * x);
    }
  }
}

// A row's sum is the same whether it goes alone or with others.
template <typename T>
void Reflect(T* a, int64_t stride, int64_t rows, T t, const T* v,
             int64_t length) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    ReflectRows<T, 4>(a + i * stride, stride, t, v, length);
  }
  for (; i < rows; ++i) {
    ReflectRows<T, 1>(a + i * stride, stride, t, v, length);
  }
}

// Rotations that follow one another down the rows hand the row that they share
// on in registers.
template <typename T, int kVectors>
HR_INLINE void RotateStrip(T* a, int64_t stride, const PlaneRotation* rotations,
                           int64_t count) {
  Vec<T> x[kVectors];
  for (int64_t i = 0; i < count; ++i) {
    const PlaneRotation& r = rotations[i];
    T* p = a + r.p * stride;
    T* q = a + r.q * stride;
    const T c = static_cast<T>(r.c), s = static_cast<T>(r.s);
    if (i == 0 || rotations[i - 1].q != r.p) {
      for (int j = 0; j < kVectors; ++j) x[j] = Load(p + j * kLanes<T>);
    }
    for (int j = 0; j < kVectors; ++j) {
      const Vec<T> y = Load(q + j * kLanes<T>);
      Store<T>(p + j * kLanes<T>, c * x[j] + s * y);
      x[j] = c * y - s * x[j];
    }
    if (i + 1 == count || rotations[i + 1].p != r.q) {
      for (int j = 0; j < kVectors; ++j) Store<T>(q + j * kLanes<T>, x[j]);
    }
  }
}

template <typename T>
void Rotate(T* a, int64_t stride, const PlaneRotation* rotations, int64_t count,
            int64_t length) {
  int64_t j = 0;
  for (; j + 4 * kLanes<T> <= length; j += 4 * kLanes<T>) {
    RotateStrip<T, 4>(a + j, stride, rotations, count);
  }
  for (; j < length; j += kLanes<T>) {
    RotateStrip<T, 1>(a + j, stride, rotations, count);
  }
}

template <typename T>
T Square(const T* v, int64_t length) {
  Vec<T> sum{};
  for (int64_t j = 0; j < length; j += kLanes<T>) {
    sum += Load(v + j) * Load(v + j);
  }
  return SumOf<T>(sum);
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const SvdLoops<float>* FloatSvd<CpuLevel::HR_LEVEL>() {
  static constexpr SvdLoops<float> loops = {RowsBy<float>, Update<float>,
                                            Reflect<float>, Rotate<float>,
                                            Square<float>};
  return &loops;
}
template <>
const SvdLoops<double>* DoubleSvd<CpuLevel::HR_LEVEL>() {
  static constexpr SvdLoops<double> loops = {RowsBy<double>, Update<double>,
                                             Reflect<double>, Rotate<double>,
                                             Square<double>};
  return &loops;
}

}  // namespace headrace
