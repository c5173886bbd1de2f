// Transcendental functions of double; also those of float that are not worth
// a polynomial of their own and are computed in double.
#include "base/numbers/double_math.h"
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

struct ExpD {
  HR_VECTOR double Run(double x) { return ::exp(x); }
};
struct Expm1D {
  HR_VECTOR double Run(double x) { return ::expm1(x); }
};
struct LogD {
  HR_VECTOR double Run(double x) { return ::log(x); }
};
struct Log1pD {
  HR_VECTOR double Run(double x) { return ::log1p(x); }
};
struct SinD {
  HR_VECTOR double Run(double x) { return ::sin(x); }
};
struct CosD {
  HR_VECTOR double Run(double x) { return ::cos(x); }
};
struct AsinD {
  HR_VECTOR double Run(double x) { return ::asin(x); }
};
struct AcosD {
  HR_VECTOR double Run(double x) { return ::acos(x); }
};
struct AtanD {
  HR_VECTOR double Run(double x) { return ::atan(x); }
};
struct TanhD {
  HR_VECTOR double Run(double x) { return ::tanh(x); }
};
struct ErfD {
  HR_VECTOR double Run(double x) { return ::erf(x); }
};

// Also of float, computed in double.
template <typename D>
struct ByDouble {
  HR_VECTOR float Run(float x) {
    return static_cast<float>(D::Run(static_cast<double>(x)));
  }
};
struct TanD {
  HR_VECTOR double Run(double x) { return ::tan(x); }
};
struct SinhD {
  HR_VECTOR double Run(double x) { return ::sinh(x); }
};
struct CoshD {
  HR_VECTOR double Run(double x) { return ::cosh(x); }
};
struct AsinhD {
  HR_VECTOR double Run(double x) { return ::asinh(x); }
};
struct AcoshD {
  HR_VECTOR double Run(double x) { return ::acosh(x); }
};
struct AtanhD {
  HR_VECTOR double Run(double x) { return ::atanh(x); }
};
struct ErfcD {
  HR_VECTOR double Run(double x) { return ::erfc(x); }
};

struct SigmoidD {
  HR_VECTOR double Run(double x) {
    // exp of a negative number cannot overflow; the other half follows by
    // symmetry.
    const double e = ::exp(-__builtin_fabs(x));
    const double s = 1.0 / (1.0 + e);
    return x < 0 ? e * s : s;
  }
};
struct SoftplusD {
  HR_VECTOR double Run(double x) {
    // max(x, 0) + log1p(exp(-|x|)): neither overflows nor loses small results.
    const double tail = ::log1p(::exp(-__builtin_fabs(x)));
    return x > 0 ? x + tail : tail;
  }
};
struct EluD {
  HR_VECTOR double Run(double x) {
    // Computed for all and chosen: no branch.
    const double e = ::expm1(x);
    return x < 0 ? e : x;
  }
};
struct SeluD {
  HR_VECTOR double Run(double x) {
    // scale * alpha, and scale.
    const double e = 1.7580993408473768599 * ::expm1(x);
    return x < 0 ? e : 1.0507009873554804934 * x;
  }
};

struct GeluErfD {
  HR_VECTOR double Run(double x) {
    // 1 / sqrt(2).
    return 0.5 * x * (1.0 + ErfD::Run(x * 0.70710678118654752440));
  }
};
struct GeluTanhD {
  HR_VECTOR double Run(double x) {
    // sqrt(2 / pi) (x + 0.044715 x^3): Hendrycks and Gimpel, 2016.
    const double t = 0.79788456080286535588 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1.0 + TanhD::Run(t));
  }
};

struct SiluD {
  HR_VECTOR double Run(double x) { return x * SigmoidD::Run(x); }
};
struct SoftplusGradD {
  HR_VECTOR double Run(double g, double x) { return g * SigmoidD::Run(x); }
};

// e to a complex power, in whole tiles. What may overflow or is not finite goes
// to the C library.
void ComplexExp(const void* x, void* y, int64_t n) {
  // Tiles of 64 numbers lie on the stack and in the first cache.
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
      // exp overflows above 709, where the product with a small sine need not;
      // NaN and infinities are odd, too.
      odd |= !(__builtin_fabs(re[i]) < 700) | !(__builtin_fabs(im[i]) < 1e300);
    }
    double* to = r + 2 * begin;
    // Sine and cosine apart: as one call they have no vector form.
    // Whole tiles, also of the last: what is beyond m was left by an earlier
    // tile and is thrown away.
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

template <typename F>
consteval LoopTable<1> Double(const char* op, float ns) {
  return OneRow({op, kType<double>, kType<double>, &MapBlocks<F, double>,
                 nullptr, nullptr, ns});
}
template <typename F>
consteval LoopTable<4> Floats(const char* op, float ns) {
  using B = ByDouble<F>;
  return JoinTables(Double<F>(op, ns),
                    OneRow({op, kType<float>, kType<float>,
                            &MapBlocks<B, float>, nullptr, nullptr, ns}),
                    UnarySmall<&MapBlocks<B, float>>(op, ns));
}

constexpr JoinedTable kRows = {
    Double<ExpD>("Exp", 1.0f),
    Double<Expm1D>("Expm1", 1.5f),
    Double<LogD>("Log", 1.0f),
    Double<Log1pD>("Log1p", 1.5f),
    Double<SinD>("Sin", 1.5f),
    Double<CosD>("Cos", 1.5f),
    Double<TanhD>("Tanh", 2.0f),
    Double<ErfD>("Erf", 2.0f),
    Double<SigmoidD>("Sigmoid", 1.5f),
    Double<SoftplusD>("Softplus", 2.5f),
    Double<EluD>("Elu", 1.5f),
    Double<SeluD>("Selu", 1.5f),
    OneRow({"SoftplusGrad", kType<double>, kType<double>, nullptr,
            &Map2Blocks<SoftplusGradD, double>, nullptr, 1.5f}),
    Floats<TanD>("Tan", 2.0f),
    Double<AsinD>("Asin", 2.0f),
    Double<AcosD>("Acos", 2.0f),
    Double<AtanD>("Atan", 2.0f),
    Floats<SinhD>("Sinh", 2.0f),
    Floats<CoshD>("Cosh", 2.0f),
    Floats<AsinhD>("Asinh", 3.0f),
    Floats<AcoshD>("Acosh", 3.0f),
    Floats<AtanhD>("Atanh", 3.0f),
    Floats<ErfcD>("Erfc", 2.0f),
    Double<GeluErfD>("_GeluErf", 2.5f),
    Double<GeluTanhD>("_GeluTanh", 2.5f),
    Double<SiluD>("_Silu", 2.0f),
    OneRow({"Exp", kType<Complex128>, kType<Complex128>, &ComplexExp, nullptr,
            nullptr, 6.0f}),
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
