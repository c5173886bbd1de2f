// Transcendental functions of double; also those of float that are not worth
// a polynomial of their own and are computed in double.
#include "base/double_math.h"
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

#define HR_FUNCTION(Name, expression)                         \
  struct Name {                                               \
    HR_VECTOR double Run(double x) { return expression; }     \
    HR_VECTOR float Run(float f) {                            \
      return static_cast<float>(Run(static_cast<double>(f))); \
    }                                                         \
  };
HR_FUNCTION(ExpD, ::exp(x))
HR_FUNCTION(Expm1D, ::expm1(x))
HR_FUNCTION(LogD, ::log(x))
HR_FUNCTION(Log1pD, ::log1p(x))
HR_FUNCTION(SinD, ::sin(x))
HR_FUNCTION(CosD, ::cos(x))
HR_FUNCTION(TanD, ::tan(x))
HR_FUNCTION(AsinD, ::asin(x))
HR_FUNCTION(AcosD, ::acos(x))
HR_FUNCTION(AtanD, ::atan(x))
HR_FUNCTION(SinhD, ::sinh(x))
HR_FUNCTION(CoshD, ::cosh(x))
HR_FUNCTION(TanhD, ::tanh(x))
HR_FUNCTION(AsinhD, ::asinh(x))
HR_FUNCTION(AcoshD, ::acosh(x))
HR_FUNCTION(AtanhD, ::atanh(x))
HR_FUNCTION(ErfD, ::erf(x))
HR_FUNCTION(ErfcD, ::erfc(x))
HR_FUNCTION(GeluD, (0.5 * x) * ::erfc(x * -0.70710678118654752440))
#undef HR_FUNCTION

struct SigmoidD {
  HR_VECTOR double Run(double x) {
    const double e = ::exp(-__builtin_fabs(x));
    const double s = 1.0 / (1.0 + e);
    return x < 0 ? e * s : s;
  }
};
struct SoftplusD {
  HR_VECTOR double Run(double x) {
    const double tail = ::log1p(::exp(-__builtin_fabs(x)));
    return x > 0 ? x + tail : tail;
  }
};
struct EluD {
  HR_VECTOR double Run(double x) {
    const double e = ::expm1(x);
    return x < 0 ? e : x;
  }
};
struct SeluD {
  HR_VECTOR double Run(double x) {
    const double e = 1.7580993408473768599 * ::expm1(x);
    return x < 0 ? e : 1.0507009873554804934 * x;
  }
};

struct GeluErfD {
  HR_VECTOR double Run(double x) {
    return 0.5 * x * (1.0 + ErfD::Run(x * 0.70710678118654752440));
  }
};
struct GeluTanhD {
  HR_VECTOR double Run(double x) {
    const double t = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1.0 + TanhD::Run(t));
  }
};

struct SoftplusGradD {
  HR_VECTOR double Run(double g, double x) { return g * SigmoidD::Run(x); }
};

// e to a complex power, in whole tiles. What may overflow or is not finite goes
// to the C library.
void ComplexExp(const void* x, void* y, int64_t n) {
  constexpr int64_t kPart = 64;
  const double* a = static_cast<const double*>(x);
  double* r = static_cast<double*>(y);
  alignas(64) double re[kPart] = {}, im[kPart] = {}, size[kPart], sine[kPart];
  for (int64_t begin = 0; begin < n; begin += kPart) {
    const int64_t m = n - begin < kPart ? n - begin : kPart;
    const double* from = a + 2 * begin;
    int odd = 0;
    for (int64_t i = 0; i < m; ++i) {
      re[i] = from[2 * i];
      im[i] = from[2 * i + 1];
      odd |= !(__builtin_fabs(re[i]) < 700) | !(__builtin_fabs(im[i]) < 1e300);
    }
    double* to = r + 2 * begin;
    // Sine and cosine apart: as one call they have no vector form.
    for (int64_t i = 0; i < kPart; ++i) size[i] = ::exp(re[i]);
    for (int64_t i = 0; i < kPart; ++i) sine[i] = ::sin(im[i]);
    double cosine[kPart];
    for (int64_t i = 0; i < kPart; ++i) cosine[i] = ::cos(im[i]);
    for (int64_t i = 0; i < m; ++i) {
      to[2 * i] = size[i] * cosine[i];
      to[2 * i + 1] = size[i] * sine[i];
    }
    for (int64_t i = 0; odd && i < m; ++i) {
      if (__builtin_fabs(re[i]) < 700 && __builtin_fabs(im[i]) < 1e300)
        continue;
      double _Complex e;
      __real__ e = re[i];
      __imag__ e = im[i];
      e = __builtin_cexp(e);
      to[2 * i] = __real__ e;
      to[2 * i + 1] = __imag__ e;
    }
  }
}

#define HR_ROW(op, F, T, ns) \
  { op, kType<T>, kType<T>, &MapBlocks<F, T>, nullptr, nullptr, ns }
#define HR_ROWS(op, F, ns)                             \
  HR_ROW(op, F, double, ns), HR_ROW(op, F, float, ns), \
      HR_UNARY_SMALL(op, HR_ARG(MapBlocks<F, float>), ns)

constexpr LoopEntry kRows[] = {
    HR_ROW("Exp", ExpD, double, 1.0f),
    HR_ROW("Expm1", Expm1D, double, 1.5f),
    HR_ROW("Log", LogD, double, 1.0f),
    HR_ROW("Log1p", Log1pD, double, 1.5f),
    HR_ROW("Sin", SinD, double, 1.5f),
    HR_ROW("Cos", CosD, double, 1.5f),
    HR_ROW("Tanh", TanhD, double, 2.0f),
    HR_ROW("Erf", ErfD, double, 2.0f),
    HR_ROW("Sigmoid", SigmoidD, double, 1.5f),
    HR_ROW("Softplus", SoftplusD, double, 2.5f),
    HR_ROW("Elu", EluD, double, 1.5f),
    HR_ROW("Selu", SeluD, double, 1.5f),
    {"SoftplusGrad", kType<double>, kType<double>, nullptr,
     &Map2Blocks<SoftplusGradD, double>, nullptr, 1.5f},
    HR_ROWS("Tan", TanD, 2.0f),
    HR_ROW("Asin", AsinD, double, 2.0f),
    HR_ROW("Acos", AcosD, double, 2.0f),
    HR_ROW("Atan", AtanD, double, 2.0f),
    HR_ROWS("Sinh", SinhD, 2.0f),
    HR_ROWS("Cosh", CoshD, 2.0f),
    HR_ROWS("Asinh", AsinhD, 3.0f),
    HR_ROWS("Acosh", AcoshD, 3.0f),
    HR_ROWS("Atanh", AtanhD, 3.0f),
    HR_ROWS("Erfc", ErfcD, 2.0f),
    HR_ROWS("_Gelu", GeluD, 2.0f),
    HR_ROW("_GeluErf", GeluErfD, double, 2.5f),
    HR_ROW("_GeluTanh", GeluTanhD, double, 2.5f),
    {"Exp", kType<Complex128>, kType<Complex128>, &ComplexExp, nullptr, nullptr,
     6.0f},
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows DoubleMathLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
