// Transcendental functions of float, and of half and bfloat16 through it.
#include <string.h>

#include "base/double_math.h"
#include "ops/math/loops/float_math_512.h"
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

#define HR_FUNCTION(Name, expression)                   \
  struct Name {                                         \
    HR_VECTOR float Run(float x) { return expression; } \
  };
HR_FUNCTION(ExpF, Exp(x))
HR_FUNCTION(Expm1F, Expm1(x))
HR_FUNCTION(LogF, Log(x))
HR_FUNCTION(Log1pF, Log1p(x))
HR_FUNCTION(TanhF, Tanh(x))
HR_FUNCTION(SigmoidF, Sigmoid(x))
HR_FUNCTION(ErfF, Erf(x))
HR_FUNCTION(AsinF, Asin(x))
HR_FUNCTION(AcosF, Acos(x))
HR_FUNCTION(AtanF, Atan(x))
HR_FUNCTION(SiluF, x* Sigmoid(x))
// x times the sigmoid is the tanh form, without its cancellation.
HR_FUNCTION(GeluTanhF, x* Sigmoid(1.5957691216f * Fma(0.044715f * x * x, x, x)))
HR_FUNCTION(EluF, x < 0.0f ? Expm1(x) : x)
HR_FUNCTION(SeluF, x < 0.0f ? 1.75809934084737685994f * Expm1(x)
                            : 1.05070098735548049342f * x)
#undef HR_FUNCTION

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|).
struct SoftplusF {
  HR_VECTOR float Run(float x) {
    const float tail = Log1p(Exp(-Abs(x)));
    return x > 0.0f ? x + tail : (x != x ? x : tail);
  }
};

// x / 2 * erfc(-x / sqrt(2)), with a polynomial for log(erfc): erfc is within
// 5e-8, and 7e-6 of itself where it is small.
struct GeluErfF {
  HR_VECTOR float Run(float x) {
    const float a = Abs(x) * 0.70710678118654752f;
    const float t = a > 4.25f ? 4.25f : a;
    float q = -5.936051366e-07f;
    q = Fma(q, t, 1.273687303e-05f);
    q = Fma(q, t, -1.167429583e-04f);
    q = Fma(q, t, 5.816568155e-04f);
    q = Fma(q, t, -1.510759816e-03f);
    q = Fma(q, t, -5.625262202e-05f);
    q = Fma(q, t, 1.930934004e-02f);
    q = Fma(q, t, -1.028355062e-01f);
    q = Fma(q, t, -6.366097331e-01f);
    q = Fma(q, t, -1.128379703e+00f);
    const float e = a > 4.25f ? 0.0f : ExpNormal(q * t);
    return 0.5f * x * (x < 0.0f ? e : 2.0f - e);
  }
};

// Sine or cosine: what is too large for the reduction goes to the C library.
template <bool kCosine>
void Trig(const void* x, void* y, int64_t n) {
  const float* a = static_cast<const float*>(x);
  float* r = static_cast<float*>(y);
  alignas(64) float tile[kTile];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t m = n - begin < kTile ? n - begin : kTile;
    int large = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) {
      const float v = a[begin + i];
      tile[i] = kCosine ? CosReduced(v) : SinReduced(v);
      large |= Abs(v) > kTrigLimit;
    }
    if (large) {
      for (int64_t i = 0; i < m; ++i) {
        const float v = a[begin + i];
        if (Abs(v) > kTrigLimit) {
          const double d = v;
          tile[i] = static_cast<float>(kCosine ? ::cos(d) : ::sin(d));
        }
      }
    }
    memcpy(r + begin, tile, m * sizeof(float));
  }
}

// e to a complex power. What may overflow, and what is too large for the
// reduction of angles, goes to the C library.
void ComplexExp(const void* x, void* y, int64_t n) {
  const float* a = static_cast<const float*>(x);
  float* r = static_cast<float*>(y);
  alignas(64) float tile[2 * kTile];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t m = n - begin < kTile ? n - begin : kTile;
    const float* from = a + 2 * begin;
    int odd = 0;
#pragma GCC ivdep
    for (int64_t i = 0; i < m; ++i) {
      const float re = from[2 * i], im = from[2 * i + 1];
      const float e = Exp(re);
      tile[2 * i] = e * CosReduced(im);
      tile[2 * i + 1] = e * SinReduced(im);
      odd |= !(Abs(re) < 87.0f) | !(Abs(im) <= kTrigLimit);
    }
    for (int64_t i = 0; odd && i < m; ++i) {
      const float re = from[2 * i], im = from[2 * i + 1];
      if (Abs(re) < 87.0f && Abs(im) <= kTrigLimit) continue;
      float _Complex e;
      __real__ e = re;
      __imag__ e = im;
      e = __builtin_cexpf(e);
      tile[2 * i] = __real__ e;
      tile[2 * i + 1] = __imag__ e;
    }
    memcpy(r + 2 * begin, tile, 2 * m * sizeof(float));
  }
}

#define HR_ROWS(op, F, ns) \
  HR_UNARY(op, F, float, ns), HR_UNARY_SMALL(op, HR_ARG(Map<F, float>), ns)

#if defined(__AVX512F__)
#define HR_ROWS16(op, F, plain, ns)                                  \
  {op, kType<float>, kType<float>, &Map16<F>, nullptr, nullptr, ns}, \
      HR_UNARY_SMALL(op, Map16<F>, ns)
#else
#define HR_ROWS16(op, F, plain, ns) HR_ROWS(op, plain, 2 * (ns))
#endif

constexpr LoopEntry kRows[] = {
    HR_ROWS16("Exp", Exp, ExpF, 0.2f),
    HR_ROWS("Expm1", Expm1F, 0.3f),
    HR_ROWS("Log", LogF, 0.4f),
    HR_ROWS("Log1p", Log1pF, 0.6f),
    HR_ROWS16("Tanh", Tanh, TanhF, 0.2f),
    HR_ROWS16("Sigmoid", Sigmoid, SigmoidF, 0.3f),
    HR_ROWS16("Erf", Erf, ErfF, 0.2f),
    HR_ROWS("Asin", AsinF, 0.4f),
    HR_ROWS("Acos", AcosF, 0.4f),
    HR_ROWS("Atan", AtanF, 0.4f),
    HR_ROWS("Softplus", SoftplusF, 0.8f),
    HR_ROWS("Elu", EluF, 0.35f),
    HR_ROWS("Selu", SeluF, 0.35f),
    HR_ROWS("_Silu", SiluF, 0.4f),
    HR_ROWS("_GeluTanh", GeluTanhF, 0.45f),
    HR_ROWS16("_GeluErf", GeluErf, GeluErfF, 0.2f),
    {"Sin", kType<float>, kType<float>, &Trig<false>},
    HR_UNARY_SMALL("Sin", Trig<false>, 0.4f),
    {"Cos", kType<float>, kType<float>, &Trig<true>},
    HR_UNARY_SMALL("Cos", Trig<true>, 0.4f),
    {"Exp", kType<Complex64>, kType<Complex64>, &ComplexExp, nullptr, nullptr,
     1.5f},
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows FloatMathLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

}  // namespace headrace
