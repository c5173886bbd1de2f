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
  const std::complex<T> sa = kind == 1 ? *a : std::complex<T>();
  const std::complex<T> sb = kind == 2 ? *b : std::complex<T>();
  for (int64_t i = 0; i < n; ++i) {
    r[i] = F::Run(kind == 1 ? sa : a[i], kind == 2 ? sb : b[i]);
  }
}

#define HR_FUNCTION(Name, expression)   \
  struct Name {                         \
    template <typename C>               \
    static auto Run(const C& x) {       \
      using R = typename C::value_type; \
      (void)sizeof(R);                  \
      return expression;                \
    }                                   \
  };
HR_FUNCTION(Expm1, C(std::expm1(x.real()) * std::cos(x.imag()) -
                         2 * std::sin(x.imag() / 2) * std::sin(x.imag() / 2),
                     std::exp(x.real()) * std::sin(x.imag())))
HR_FUNCTION(Log, std::log(x))
HR_FUNCTION(Log1p, std::log(x + R(1)))
HR_FUNCTION(Sin, std::sin(x))
HR_FUNCTION(Cos, std::cos(x))
HR_FUNCTION(Tan, std::tan(x))
HR_FUNCTION(Asin, std::asin(x))
HR_FUNCTION(Acos, std::acos(x))
HR_FUNCTION(Atan, std::atan(x))
HR_FUNCTION(Sinh, std::sinh(x))
HR_FUNCTION(Cosh, std::cosh(x))
HR_FUNCTION(Tanh, std::tanh(x))
HR_FUNCTION(Asinh, std::asinh(x))
HR_FUNCTION(Acosh, std::acosh(x))
HR_FUNCTION(Atanh, std::atanh(x))
HR_FUNCTION(Sqrt, std::sqrt(x))
HR_FUNCTION(Rsqrt, R(1) / std::sqrt(x))
HR_FUNCTION(Sigmoid, R(1) / (R(1) + std::exp(-x)))
HR_FUNCTION(Sign, x == C() ? C() : x / std::abs(x))
HR_FUNCTION(Magnitude, std::abs(x))
HR_FUNCTION(Angle, std::arg(x))
#undef HR_FUNCTION

#define HR_FUNCTION2(Name, expression)     \
  struct Name {                            \
    template <typename C>                  \
    static C Run(const C& a, const C& b) { \
      using R = typename C::value_type;    \
      (void)sizeof(R);                     \
      return expression;                   \
    }                                      \
  };
HR_FUNCTION2(Divide, a / b)
HR_FUNCTION2(DivNoNan, b == C() ? C() : a / b)
HR_FUNCTION2(MulNoNan, b == C() ? C() : a * b)
HR_FUNCTION2(Xdivy, a == C() ? C() : a / b)
HR_FUNCTION2(Xlogy, a == C() ? C() : a * std::log(b))
HR_FUNCTION2(Xlog1py, a == C() ? C() : a * std::log(b + R(1)))
HR_FUNCTION2(Pow, b == C() ? C(1) : a == C() ? C() : std::pow(a, b))
// As upstream's: these two are given the conjugate, the others take it.
HR_FUNCTION2(TanhGrad, b*(R(1) - a * a))
HR_FUNCTION2(SigmoidGrad, b*(a*(R(1) - a)))
HR_FUNCTION2(SqrtGrad, b* std::conj(R(0.5) / a))
HR_FUNCTION2(RsqrtGrad, b* std::conj(R(-0.5) * (a * a * a)))
HR_FUNCTION2(ReciprocalGrad, b* std::conj(-a* a))
#undef HR_FUNCTION2

#define HR_ROW(op, F)                                                        \
  {op,                                                                       \
   kComplexType<float>,                                                      \
   kComplexType<float>,                                                      \
   Map<float, F>,                                                            \
   nullptr,                                                                  \
   nullptr,                                                                  \
   30.0f},                                                                   \
  {                                                                          \
    op, kComplexType<double>, kComplexType<double>, Map<double, F>, nullptr, \
        nullptr, 60.0f                                                       \
  }
#define HR_REAL_ROW(op, F)                                             \
  {op,                                                                 \
   kComplexType<float>,                                                \
   kRealType<float>,                                                   \
   MapToReal<float, F>,                                                \
   nullptr,                                                            \
   nullptr,                                                            \
   5.0f},                                                              \
  {                                                                    \
    op, kComplexType<double>, kRealType<double>, MapToReal<double, F>, \
        nullptr, nullptr, 10.0f                                        \
  }
#define HR_ROW2(op, F)                                                        \
  {op,      kComplexType<float>, kComplexType<float>,                         \
   nullptr, Map2<float, F>,      nullptr,                                     \
   5.0f},                                                                     \
  {                                                                           \
    op, kComplexType<double>, kComplexType<double>, nullptr, Map2<double, F>, \
        nullptr, 5.0f                                                         \
  }

constexpr LoopEntry kComplexRows[] = {
    HR_ROW("Expm1", Expm1),
    HR_ROW("Log", Log),
    HR_ROW("Log1p", Log1p),
    HR_ROW("Sin", Sin),
    HR_ROW("Cos", Cos),
    HR_ROW("Tan", Tan),
    HR_ROW("Asin", Asin),
    HR_ROW("Acos", Acos),
    HR_ROW("Atan", Atan),
    HR_ROW("Sinh", Sinh),
    HR_ROW("Cosh", Cosh),
    HR_ROW("Tanh", Tanh),
    HR_ROW("Asinh", Asinh),
    HR_ROW("Acosh", Acosh),
    HR_ROW("Atanh", Atanh),
    HR_ROW("Sqrt", Sqrt),
    HR_ROW("Rsqrt", Rsqrt),
    HR_ROW("Sigmoid", Sigmoid),
    HR_ROW("Sign", Sign),
    HR_REAL_ROW("ComplexAbs", Magnitude),
    HR_REAL_ROW("Angle", Angle),
    HR_ROW2("Div", Divide),
    HR_ROW2("RealDiv", Divide),
    HR_ROW2("DivNoNan", DivNoNan),
    HR_ROW2("MulNoNan", MulNoNan),
    HR_ROW2("Xdivy", Xdivy),
    HR_ROW2("Xlogy", Xlogy),
    HR_ROW2("Xlog1py", Xlog1py),
    HR_ROW2("Pow", Pow),
    HR_ROW2("TanhGrad", TanhGrad),
    HR_ROW2("SigmoidGrad", SigmoidGrad),
    HR_ROW2("SqrtGrad", SqrtGrad),
    HR_ROW2("RsqrtGrad", RsqrtGrad),
    HR_ROW2("ReciprocalGrad", ReciprocalGrad),
    HR_ROW2("InvGrad", ReciprocalGrad),
};

}  // namespace

LoopRows ComplexMathLoops() { return {kComplexRows, std::size(kComplexRows)}; }

}  // namespace headrace
