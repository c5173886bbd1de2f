// Two-operand arithmetic that cannot fail.
#include "base/numbers/double_math.h"
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// Integers wrap, so they are computed unsigned and no narrower than int.
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
struct Add {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a + b;
    } else {
      return static_cast<T>(Wide<T>(a) + Wide<T>(b));
    }
  }
};
struct Subtract {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a - b;
    } else {
      return static_cast<T>(Wide<T>(a) - Wide<T>(b));
    }
  }
};
struct Multiply {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a * b;
    } else {
      return static_cast<T>(Wide<T>(a) * Wide<T>(b));
    }
  }
};

struct AddComplex {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return {a.re + b.re, a.im + b.im};
  }
};
struct SubtractComplex {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return {a.re - b.re, a.im - b.im};
  }
};
struct MultiplyComplex {
  // Sums alone: of a difference beside a sum g++ 12 makes fused multiplications
  // (whatever -ffp-contract says), in whole vectors and not in what is left, so
  // that the bits would depend on where an element lies.
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return {a.re * b.re + -a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
struct SquaredDifferenceComplex {  // |a - b|^2 as d * conj(d)
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const auto re = a.re - b.re, im = a.im - b.im;
    // As d * conj(d), whose imaginary part is exactly 0.
    return {re * re + im * im, 0};
  }
};

struct SquaredDifference {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T d = Subtract::Run(a, b);
    return Multiply::Run(d, d);
  }
};
struct Maximum {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (kIsFloat<T>) {
      const T m = a > b ? a : b;  // b where either is a NaN
      return a != a ? a : m;
    } else {
      return a > b ? a : b;
    }
  }
};
struct Minimum {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (kIsFloat<T>) {
      const T m = a < b ? a : b;
      return a != a ? a : m;
    } else {
      return a < b ? a : b;
    }
  }
};
struct Divide {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    return a / b;
  }
};
struct DivNoNan {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    // Computed everywhere and chosen afterwards: no branch, and nothing traps.
    const T q = a / b;
    return b == 0 ? T{0} : q;
  }
};
struct MulNoNan {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T p = a * b;
    return b == 0 ? T{0} : p;
  }
};
struct Xdivy {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T q = a / b;
    return a == 0 ? T{0} : q;
  }
};
struct FloorDivide {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    // Upstream's for floats: the quotient is rounded before its floor is taken.
    if constexpr (sizeof(T) == 4) return __builtin_floorf(a / b);
    if constexpr (sizeof(T) == 8) return __builtin_floor(a / b);
  }
};
struct TruncateDivide {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (sizeof(T) == 4) return __builtin_truncf(a / b);
    if constexpr (sizeof(T) == 8) return __builtin_trunc(a / b);
  }
};
struct TruncateMod {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    if constexpr (sizeof(T) == 4) return __builtin_fmodf(a, b);
    if constexpr (sizeof(T) == 8) return __builtin_fmod(a, b);
  }
};
struct FloorModulo {
  template <typename T>
  HR_VECTOR T Run(T a, T b) {
    const T r = TruncateMod::Run(a, b);
    // The sign of the divisor, as Python's %.
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

// Remainders of floats. In double both the quotient's integer part and the
// remainder are exact as long as the quotient is below 2^28; what is not goes
// to the C library.
template <bool kFloor>
void FloatMod(const void* x, const void* z, void* y, int64_t n, int kind) {
  const float* a = static_cast<const float*>(x);
  const float* b = static_cast<const float*>(z);
  float* r = static_cast<float*>(y);
  const float sa = kind == 1 ? *a : 0.0f, sb = kind == 2 ? *b : 0.0f;
  float p[kTile], q[kTile], out[kTile];
  uint8_t easy[kTile];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t m = n - begin < kTile ? n - begin : kTile;
    for (int64_t i = 0; i < m; ++i) {
      // Copied first: the output may lie over either operand.
      p[i] = kind == 1 ? sa : a[begin + i];
      q[i] = kind == 2 ? sb : b[begin + i];
    }
    int hard = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) {
      const double u = p[i], v = q[i], quotient = u / v;
      // Exact in double: u and v have 24 bits, and the product's 24 + 28 fit
      // 53.
      const double rest = u - __builtin_trunc(quotient) * v;
      const bool fix = kFloor & (rest != 0) & ((rest < 0) != (v < 0));
      const double shifted = fix ? rest + v : rest;
      // A remainder of 0 has the dividend's sign, as fmod's.
      out[i] =
          static_cast<float>(rest == 0 ? __builtin_copysign(0.0, u) : shifted);
      // 2^28; NaN remainders (division by 0, infinities) are hard as well.
      easy[i] = (__builtin_fabs(quotient) < 268435456.0) & (rest == rest);
      hard |= !easy[i];
    }
    for (int64_t i = 0; i < m && hard; ++i) {
      if (easy[i]) continue;
      out[i] =
          kFloor ? FloorModulo::Run(p[i], q[i]) : TruncateMod::Run(p[i], q[i]);
    }
    __builtin_memcpy(r + begin, out, m * sizeof(float));
  }
}

// Through the C library's double functions.
struct PowD {
  HR_VECTOR double Run(double a, double b) { return ::pow(a, b); }
  HR_VECTOR float Run(float a, float b) {
    // In double: the result is off by hardly more than float's own rounding.
    return static_cast<float>(
        Run(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct Atan2D {
  HR_VECTOR double Run(double a, double b) { return ::atan2(a, b); }
  HR_VECTOR float Run(float a, float b) {
    return static_cast<float>(
        Run(static_cast<double>(a), static_cast<double>(b)));
  }
};
struct XlogyD {
  HR_VECTOR double Run(double a, double b) {
    // Both computed, then chosen: vectors have no branches.
    const double r = a * ::log(b);
    return a == 0 ? 0.0 : r;
  }
  HR_VECTOR float Run(float a, float b) {
    const float r = a * Log(b);
    return a == 0 ? 0.0f : r;
  }
};
struct Xlog1pyD {
  HR_VECTOR double Run(double a, double b) {
    const double r = a * ::log1p(b);
    return a == 0 ? 0.0 : r;
  }
  HR_VECTOR float Run(float a, float b) {
    const float r = a * Log1p(b);
    return a == 0 ? 0.0f : r;
  }
};

// Squares and the like are a product, exactly as rounded as pow's.
template <typename T>
void Pow(const void* a, const void* b, void* y, int64_t n, int kind) {
  // One exponent for all: the common case.
  if (kind == 2) {
    const T p = *static_cast<const T*>(b);
    if (p == 2) return Map2<Multiply, T>(a, a, y, n, 0);
    if (p == 1) return Map2<Multiply, T>(a, b, y, n, 2);  // times 1
    if (p == -1) {
      const T one = 1;
      return Map2<Divide, T>(&one, a, y, n, 1);
    }
  }
  Map2Blocks<PowD, T>(a, b, y, n, kind);
}

template <typename F, BinaryLoop kFloatLoop>
consteval LoopTable<4> Modulo(const char* op) {
  return JoinTables(Binary<F>(op, 10.0f, Types<double>()),
                    OneRow({op, kType<float>, kType<float>, nullptr, kFloatLoop,
                            nullptr, 2.0f}),
                    BinarySmall<kFloatLoop>(op, 2.0f));
}
// In whole blocks; double costs what float does.
template <typename F>
consteval LoopTable<4> Blocks(const char* op, float ns) {
  return JoinTables(OneRow({op, kType<float>, kType<float>, nullptr,
                            &Map2Blocks<F, float>, nullptr, ns}),
                    OneRow({op, kType<double>, kType<double>, nullptr,
                            &Map2Blocks<F, double>, nullptr, ns}),
                    BinarySmall<&Map2Blocks<F, float>>(op, ns));
}

constexpr JoinedTable kRows = {
    BinaryFloats<Add>("Add", 0.2f),
    Binary<Add>("Add", 0.2f, IntegerTypes()),
    Binary<AddComplex>("Add", 0.2f, ComplexTypes()),
    BinaryFloats<Add>("AddV2", 0.2f),
    Binary<Add>("AddV2", 0.2f, IntegerTypes()),
    Binary<AddComplex>("AddV2", 0.2f, ComplexTypes()),
    BinaryFloats<Subtract>("Sub", 0.2f),
    Binary<Subtract>("Sub", 0.2f, IntegerTypes()),
    Binary<SubtractComplex>("Sub", 0.2f, ComplexTypes()),
    BinaryFloats<Multiply>("Mul", 0.2f),
    Binary<Multiply>("Mul", 0.2f, IntegerTypes()),
    Binary<MultiplyComplex>("Mul", 0.3f, ComplexTypes()),
    BinaryFloats<SquaredDifference>("SquaredDifference", 0.2f),
    Binary<SquaredDifference>("SquaredDifference", 0.2f, IntegerTypes()),
    Binary<SquaredDifferenceComplex>("SquaredDifference", 0.2f, ComplexTypes()),
    BinaryFloats<Maximum>("Maximum", 0.2f),
    Binary<Maximum>("Maximum", 0.2f, IntegerTypes()),
    BinaryFloats<Minimum>("Minimum", 0.2f),
    Binary<Minimum>("Minimum", 0.2f, IntegerTypes()),
    BinaryFloats<Divide>("Div", 0.3f),
    BinaryFloats<Divide>("RealDiv", 0.3f),
    BinaryFloats<DivNoNan>("DivNoNan", 0.3f),
    BinaryFloats<MulNoNan>("MulNoNan", 0.2f),
    BinaryFloats<Xdivy>("Xdivy", 0.3f),
    BinaryFloats<FloorDivide>("FloorDiv", 0.3f),
    BinaryFloats<TruncateDivide>("TruncateDiv", 0.3f),
    Modulo<TruncateMod, &FloatMod<false>>("Mod"),
    Modulo<TruncateMod, &FloatMod<false>>("TruncateMod"),
    Modulo<FloorModulo, &FloatMod<true>>("FloorMod"),
    Blocks<Atan2D>("Atan2", 3.0f),
    Blocks<XlogyD>("Xlogy", 1.0f),
    Blocks<Xlog1pyD>("Xlog1py", 1.5f),
    OneRow({"Pow", kType<float>, kType<float>, nullptr, &Pow<float>, nullptr,
            3.0f}),
    OneRow({"Pow", kType<double>, kType<double>, nullptr, &Pow<double>, nullptr,
            3.0f}),
    BinarySmall<&Pow<float>>("Pow", 3.0f),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows ArithmeticLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
