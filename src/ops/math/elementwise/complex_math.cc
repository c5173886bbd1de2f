// Functions of complex numbers, by the C++ library (Exp is among the loops).
#include <complex>

#include "ops/math/loops/loop_tables.h"

namespace headrace {
namespace {

template <typename T>
constexpr uint8_t kComplexType = sizeof(T) == 4 ? 8 : 18;
template <typename T>
constexpr uint8_t kRealType = sizeof(T) == 4 ? 1 : 2;

template <typename T, typename F>
void Map(const void* x, void* y, int64_t n) {
  const auto* a = static_cast<const std::complex<T>*>(x);
  auto* r = static_cast<std::complex<T>*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = F::Run(a[i]);
}
template <typename T, typename F>
void MapToReal(const void* x, void* y, int64_t n) {
  const auto* a = static_cast<const std::complex<T>*>(x);
  auto* r = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = F::Run(a[i]);
}
template <typename T, typename F>
void Map2(const void* x, const void* z, void* y, int64_t n, int kind) {
  const auto* a = static_cast<const std::complex<T>*>(x);
  const auto* b = static_cast<const std::complex<T>*>(z);
  auto* r = static_cast<std::complex<T>*>(y);
  // Read once: the output may lie over a scalar operand.
  const std::complex<T> sa = kind == 1 ? *a : std::complex<T>();
  const std::complex<T> sb = kind == 2 ? *b : std::complex<T>();
  for (int64_t i = 0; i < n; ++i) {
    r[i] = F::Run(kind == 1 ? sa : a[i], kind == 2 ? sb : b[i]);
  }
}

struct Expm1 {
  template <typename C>
  static auto Run(const C& x) {
    // exp(a + bi) - 1 = expm1(a) cos b + (cos b - 1) + i exp(a) sin b, and cos
    // b - 1 = -2 sin(b / 2)^2, which does not cancel near 0.
    return C(std::expm1(x.real()) * std::cos(x.imag()) -
                 2 * std::sin(x.imag() / 2) * std::sin(x.imag() / 2),
             std::exp(x.real()) * std::sin(x.imag()));
  }
};
struct Log {
  template <typename C>
  static auto Run(const C& x) {
    return std::log(x);
  }
};
struct Log1p {
  template <typename C>
  static auto Run(const C& x) {
    using R = typename C::value_type;
    return std::log(x + R(1));
  }
};
struct Sin {
  template <typename C>
  static auto Run(const C& x) {
    return std::sin(x);
  }
};
struct Cos {
  template <typename C>
  static auto Run(const C& x) {
    return std::cos(x);
  }
};
struct Tan {
  template <typename C>
  static auto Run(const C& x) {
    return std::tan(x);
  }
};
struct Asin {
  template <typename C>
  static auto Run(const C& x) {
    return std::asin(x);
  }
};
struct Acos {
  template <typename C>
  static auto Run(const C& x) {
    return std::acos(x);
  }
};
struct Atan {
  template <typename C>
  static auto Run(const C& x) {
    return std::atan(x);
  }
};
struct Sinh {
  template <typename C>
  static auto Run(const C& x) {
    return std::sinh(x);
  }
};
struct Cosh {
  template <typename C>
  static auto Run(const C& x) {
    return std::cosh(x);
  }
};
struct Tanh {
  template <typename C>
  static auto Run(const C& x) {
    return std::tanh(x);
  }
};
struct Asinh {
  template <typename C>
  static auto Run(const C& x) {
    return std::asinh(x);
  }
};
struct Acosh {
  template <typename C>
  static auto Run(const C& x) {
    return std::acosh(x);
  }
};
struct Atanh {
  template <typename C>
  static auto Run(const C& x) {
    return std::atanh(x);
  }
};
struct Sqrt {
  template <typename C>
  static auto Run(const C& x) {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <typename C>
  static auto Run(const C& x) {
    using R = typename C::value_type;
    return R(1) / std::sqrt(x);
  }
};
struct Sigmoid {
  template <typename C>
  static auto Run(const C& x) {
    using R = typename C::value_type;
    return R(1) / (R(1) + std::exp(-x));
  }
};
struct Sign {
  template <typename C>
  static auto Run(const C& x) {
    // 0 has no direction.
    return x == C() ? C() : x / std::abs(x);
  }
};
struct Magnitude {
  template <typename C>
  static auto Run(const C& x) {
    return std::abs(x);
  }
};
struct Angle {
  template <typename C>
  static auto Run(const C& x) {
    return std::arg(x);
  }
};

struct Divide {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return a / b;
  }
};
struct DivNoNan {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return b == C() ? C() : a / b;
  }
};
struct MulNoNan {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return b == C() ? C() : a * b;
  }
};
struct Xdivy {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return a == C() ? C() : a / b;
  }
};
struct Xlogy {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return a == C() ? C() : a * std::log(b);
  }
};
struct Xlog1py {
  template <typename C>
  static C Run(const C& a, const C& b) {
    using R = typename C::value_type;
    return a == C() ? C() : a * std::log(b + R(1));
  }
};
struct Pow {
  template <typename C>
  static C Run(const C& a, const C& b) {
    // 0^0 is 1; std::pow would take the logarithm of 0.
    return b == C() ? C(1) : a == C() ? C() : std::pow(a, b);
  }
};
// As upstream's: these two are given the conjugate, the others take it.
struct TanhGrad {
  template <typename C>
  static C Run(const C& a, const C& b) {
    using R = typename C::value_type;
    return b * (R(1) - a * a);
  }
};
struct SigmoidGrad {
  template <typename C>
  static C Run(const C& a, const C& b) {
    using R = typename C::value_type;
    return b * (a * (R(1) - a));
  }
};
struct SqrtGrad {
  template <typename C>
  static C Run(const C& a, const C& b) {
    using R = typename C::value_type;
    return b * std::conj(R(0.5) / a);
  }
};
struct RsqrtGrad {
  template <typename C>
  static C Run(const C& a, const C& b) {
    using R = typename C::value_type;
    return b * std::conj(R(-0.5) * (a * a * a));
  }
};
struct ReciprocalGrad {
  template <typename C>
  static C Run(const C& a, const C& b) {
    return b * std::conj(-a * a);
  }
};

template <typename F>
consteval LoopTable<2> ToComplex(const char* op) {
  return {{{op, kComplexType<float>, kComplexType<float>, Map<float, F>,
            nullptr, nullptr, 30.0f},
           {op, kComplexType<double>, kComplexType<double>, Map<double, F>,
            nullptr, nullptr, 60.0f}}};
}
template <typename F>
consteval LoopTable<2> ToReals(const char* op) {
  return {{{op, kComplexType<float>, kRealType<float>, MapToReal<float, F>,
            nullptr, nullptr, 5.0f},
           {op, kComplexType<double>, kRealType<double>, MapToReal<double, F>,
            nullptr, nullptr, 10.0f}}};
}
template <typename F>
consteval LoopTable<2> OfTwo(const char* op) {
  return {{{op, kComplexType<float>, kComplexType<float>, nullptr,
            Map2<float, F>, nullptr, 5.0f},
           {op, kComplexType<double>, kComplexType<double>, nullptr,
            Map2<double, F>, nullptr, 5.0f}}};
}

constexpr JoinedTable kComplexRows = {
    ToComplex<Expm1>("Expm1"),
    ToComplex<Log>("Log"),
    ToComplex<Log1p>("Log1p"),
    ToComplex<Sin>("Sin"),
    ToComplex<Cos>("Cos"),
    ToComplex<Tan>("Tan"),
    ToComplex<Asin>("Asin"),
    ToComplex<Acos>("Acos"),
    ToComplex<Atan>("Atan"),
    ToComplex<Sinh>("Sinh"),
    ToComplex<Cosh>("Cosh"),
    ToComplex<Tanh>("Tanh"),
    ToComplex<Asinh>("Asinh"),
    ToComplex<Acosh>("Acosh"),
    ToComplex<Atanh>("Atanh"),
    ToComplex<Sqrt>("Sqrt"),
    ToComplex<Rsqrt>("Rsqrt"),
    ToComplex<Sigmoid>("Sigmoid"),
    ToComplex<Sign>("Sign"),
    ToReals<Magnitude>("ComplexAbs"),
    ToReals<Angle>("Angle"),
    OfTwo<Divide>("Div"),
    OfTwo<Divide>("RealDiv"),
    OfTwo<DivNoNan>("DivNoNan"),
    OfTwo<MulNoNan>("MulNoNan"),
    OfTwo<Xdivy>("Xdivy"),
    OfTwo<Xlogy>("Xlogy"),
    OfTwo<Xlog1py>("Xlog1py"),
    OfTwo<Pow>("Pow"),
    OfTwo<TanhGrad>("TanhGrad"),
    OfTwo<SigmoidGrad>("SigmoidGrad"),
    OfTwo<SqrtGrad>("SqrtGrad"),
    OfTwo<RsqrtGrad>("RsqrtGrad"),
    OfTwo<ReciprocalGrad>("ReciprocalGrad"),
    OfTwo<ReciprocalGrad>("InvGrad"),
};

}  // namespace

LoopRows ComplexMathLoops() { return kComplexRows.All(); }

}  // namespace headrace
