// One-operand ops that need no more than a few instructions.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<Complex<T>> = true;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// Arithmetic of integers wraps: done on the unsigned type.
template <typename T>
using Unsigned = std::make_unsigned_t<T>;

struct Neg {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (kIsComplex<T>) {
      return {-x.re, -x.im};
    } else if constexpr (kIsFloat<T>) {
      return -x;
    } else {
      return static_cast<T>(-static_cast<Unsigned<T>>(x));
    }
  }
};
struct Absolute {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (std::is_same_v<T, float>) return __builtin_fabsf(x);
    if constexpr (std::is_same_v<T, double>) return __builtin_fabs(x);
    if constexpr (std::is_unsigned_v<T>) return x;
    if constexpr (!kIsFloat<T>) {
      // The most negative number is its own absolute value, as it wraps.
      return static_cast<T>(x < 0 ? -static_cast<Unsigned<T>>(x)
                                  : static_cast<Unsigned<T>>(x));
    }
  }
};
struct Sign {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (kIsFloat<T>) {
      const T s = static_cast<T>((x > 0 ? 1 : 0) - (x < 0 ? 1 : 0));
      // Upstream: the sign of NaN is NaN.
      return x != x ? x : s;
    } else {
      return static_cast<T>((x > 0) - (x < 0));
    }
  }
};
struct Square {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (kIsComplex<T>) {
      return {x.re * x.re - x.im * x.im, 2 * (x.re * x.im)};
    } else if constexpr (kIsFloat<T>) {
      return x * x;
    } else {
      // Unsigned and no narrower than int, so that it wraps.
      using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      const U u = static_cast<U>(x);
      return static_cast<T>(u * u);
    }
  }
};
struct Reciprocal {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (kIsComplex<T>) {
      // By the schoolbook: no scaling against overflow, as upstream's vector
      // code has none.
      const auto d = x.re * x.re + x.im * x.im;
      return {x.re / d, -x.im / d};
    } else {
      return T{1} / x;
    }
  }
};
struct Conj {
  template <typename T>
  HR_VECTOR T Run(T x) {
    return {x.re, -x.im};
  }
};
struct Sqrt {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_sqrtf(x);
    if constexpr (sizeof(T) == 8) return __builtin_sqrt(x);
  }
};
struct Rsqrt {
  template <typename T>
  HR_VECTOR T Run(T x) {
    // Exactly rounded twice, not the processor's estimate, which differs from
    // one to the next.
    return T{1} / Sqrt::Run(x);
  }
};
struct Ceil {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_ceilf(x);
    if constexpr (sizeof(T) == 8) return __builtin_ceil(x);
  }
};
struct Floor {
  template <typename T>
  HR_VECTOR T Run(T x) {
    if constexpr (sizeof(T) == 4) return __builtin_floorf(x);
    if constexpr (sizeof(T) == 8) return __builtin_floor(x);
  }
};
struct Round {  // half to even
  template <typename T>
  HR_VECTOR T Run(T x) {
    // In the current mode, to even, without raising inexact.
    if constexpr (sizeof(T) == 4) return __builtin_nearbyintf(x);
    if constexpr (sizeof(T) == 8) return __builtin_nearbyint(x);
  }
};
struct Same {
  template <typename T>
  HR_VECTOR T Run(T x) {
    return x;
  }
};
struct Relu {
  template <typename T>
  HR_VECTOR T Run(T x) {
    return x < T{0} ? T{0} : x;  // a NaN stays
  }
};
struct Relu6 {
  template <typename T>
  HR_VECTOR T Run(T x) {
    const T r = x < T{0} ? T{0} : x;
    return r > T{6} ? T{6} : r;
  }
};
struct Softsign {
  template <typename T>
  HR_VECTOR T Run(T x) {
    return x / (T{1} + Absolute::Run(x));
  }
};
struct Invert {
  template <typename T>
  HR_VECTOR T Run(T x) {
    return static_cast<T>(~x);
  }
};
struct IsNan {
  template <typename T>
  HR_VECTOR bool Run(T x) {
    return x != x;
  }
};
struct IsInf {
  template <typename T>
  HR_VECTOR bool Run(T x) {
    // By bits the same for both signs; no call of the library.
    return Absolute::Run(x) == static_cast<T>(kInfinity);
  }
};
struct IsFinite {
  template <typename T>
  HR_VECTOR bool Run(T x) {
    return Absolute::Run(x) < static_cast<T>(kInfinity);
  }
};
struct Not {
  // Bytes are 0 or 1.
  HR_VECTOR uint8_t Run(uint8_t x) { return x ^ 1; }
};

// Of floats, to bool.
template <typename F>
consteval LoopTable<4> Test(const char* op) {
  return {{{op, kType<float>, kType<bool>, &Map<F, float, bool>},
           {op, kType<double>, kType<bool>, &Map<F, double, bool>},
           {op, kType<half>, kType<bool>,
            &ViaFloat<&Map<F, float, bool>, half, bool>},
           {op, kType<bfloat16>, kType<bool>,
            &ViaFloat<&Map<F, float, bool>, bfloat16, bool>}}};
}

// Parts of complex numbers.
template <typename T, bool kImaginary>
void Part(const void* x, void* y, int64_t n) {
  const Complex<T>* a = static_cast<const Complex<T>*>(x);
  T* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = kImaginary ? a[i].im : a[i].re;
}

constexpr JoinedTable kRows = {
    UnaryFloats<Neg>("Neg", 0.15f),
    Unary<Neg>("Neg", 0.15f, IntegerTypes()),
    Unary<Neg>("Neg", 0.15f, ComplexTypes()),
    UnaryFloats<Absolute>("Abs", 0.15f),
    Unary<Absolute>("Abs", 0.15f, IntegerTypes()),
    UnaryFloats<Sign>("Sign", 0.2f),
    Unary<Sign>("Sign", 0.2f, IntegerTypes()),
    UnaryFloats<Square>("Square", 0.15f),
    Unary<Square>("Square", 0.2f, IntegerTypes()),
    Unary<Square>("Square", 0.3f, ComplexTypes()),
    UnaryFloats<Sqrt>("Sqrt", 0.4f),
    UnaryFloats<Rsqrt>("Rsqrt", 0.6f),
    UnaryFloats<Reciprocal>("Reciprocal", 0.3f),
    Unary<Reciprocal>("Reciprocal", 0.6f, ComplexTypes()),
    UnaryFloats<Reciprocal>("Inv", 0.3f),
    Unary<Reciprocal>("Inv", 0.6f, ComplexTypes()),
    Unary<Conj>("Conj", 0.2f, ComplexTypes()),
    UnaryFloats<Ceil>("Ceil", 0.15f),
    UnaryFloats<Floor>("Floor", 0.15f),
    UnaryFloats<Round>("Round", 0.15f),
    Unary<Same>("Round", 0.15f, IntegerTypes()),
    UnaryFloats<Round>("Rint", 0.15f),
    UnaryFloats<Relu>("Relu", 0.15f),
    Unary<Relu>("Relu", 0.15f, IntegerTypes()),
    UnaryFloats<Relu6>("Relu6", 0.15f),
    Unary<Relu6>("Relu6", 0.15f, IntegerTypes()),
    UnaryFloats<Softsign>("Softsign", 0.3f),
    Unary<Invert>("Invert", 0.15f, IntegerTypes()),
    Test<IsNan>("IsNan"),
    Test<IsInf>("IsInf"),
    Test<IsFinite>("IsFinite"),
    OneRow({"LogicalNot", kType<bool>, kType<bool>, &Map<Not, uint8_t>, nullptr,
            nullptr, 0.1f, SmallMap<Not, uint8_t>(0.1f)}),
    OneRow({"Real", kType<Complex64>, kType<float>, &Part<float, false>}),
    OneRow({"Real", kType<Complex128>, kType<double>, &Part<double, false>}),
    OneRow({"Imag", kType<Complex64>, kType<float>, &Part<float, true>}),
    OneRow({"Imag", kType<Complex128>, kType<double>, &Part<double, true>}),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows UnaryLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
