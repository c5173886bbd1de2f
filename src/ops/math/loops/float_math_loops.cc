// Transcendental functions of float, and of half and bfloat16 through it.
#include <string.h>

#include "base/numbers/double_math.h"
#include "ops/math/loops/float_math_512.h"
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

// Of a float, or of sixteen where there is code for them.
struct ExpF {
  template <typename V>
  HR_VECTOR V Run(V x) {
    return Exp(x);
  }
};
struct TanhF {
  template <typename V>
  HR_VECTOR V Run(V x) {
    return Tanh(x);
  }
};
struct SigmoidF {
  template <typename V>
  HR_VECTOR V Run(V x) {
    return Sigmoid(x);
  }
};
struct ErfF {
  template <typename V>
  HR_VECTOR V Run(V x) {
    return Erf(x);
  }
};

struct Expm1F {
  HR_VECTOR float Run(float x) { return Expm1(x); }
};
struct LogF {
  HR_VECTOR float Run(float x) { return Log(x); }
};
struct Log1pF {
  HR_VECTOR float Run(float x) { return Log1p(x); }
};
struct AsinF {
  HR_VECTOR float Run(float x) { return Asin(x); }
};
struct AcosF {
  HR_VECTOR float Run(float x) { return Acos(x); }
};
struct AtanF {
  HR_VECTOR float Run(float x) { return Atan(x); }
};
struct SiluF {
  HR_VECTOR float Run(float x) { return x * Sigmoid(x); }
};
// x times the sigmoid is the tanh form, without its cancellation.
struct GeluTanhF {
  HR_VECTOR float Run(float x) {
    // 2 sqrt(2 / pi): (1 + tanh(u)) / 2 is the sigmoid of 2u.
    return x * Sigmoid(1.5957691216f * Fma(0.044715f * x * x, x, x));
  }
};
struct EluF {
  HR_VECTOR float Run(float x) { return x < 0.0f ? Expm1(x) : x; }
};
struct SeluF {
  HR_VECTOR float Run(float x) {
    return x < 0.0f ? 1.75809934084737685994f * Expm1(x)
                    : 1.05070098735548049342f * x;
  }
};

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|).
struct SoftplusF {
  HR_VECTOR float Run(float x) {
    const float tail = Log1p(Exp(-Abs(x)));
    // Log1p(Exp(-|NaN|)) need not be a NaN.
    return x > 0.0f ? x + tail : (x != x ? x : tail);
  }
};

// x / 2 * erfc(-x / sqrt(2)), with a polynomial for log(erfc): erfc is within
// 5e-8, and 7e-6 of itself where it is small.
struct GeluErfF {
  HR_VECTOR float Run(float x) {
    // 1 / sqrt(2).
    const float a = Abs(x) * 0.70710678118654752f;
    // Beyond, erfc is less than 2e-9 and x / 2 times it is 0 beside float's
    // digits.
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
    // erfc(-a) = 2 - erfc(a).
    return 0.5f * x * (x < 0.0f ? e : 2.0f - e);
  }
#if defined(__AVX512F__)
  HR_VECTOR __m512 Run(__m512 x) { return GeluErf(x); }
#endif
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
      // The loop goes on whatever it meets: a branch would end its vectors.
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
    // The result may lie over the argument, which the second pass still reads.
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
      // exp(88.7) is the largest float; NaN compares as odd.
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

template <typename F>
consteval LoopTable<3> Floats(const char* op, float ns) {
  return JoinTables(Unary<F>(op, ns, Types<float>()),
                    UnarySmall<&Map<F, float>>(op, ns));
}

// The same of functions that have code for sixteen floats at once, which costs
// half as much.
template <typename F>
consteval LoopTable<3> Floats16(const char* op, float ns) {
#if defined(__AVX512F__)
  return JoinTables(
      OneRow({op, kType<float>, kType<float>, &Map16<F>, nullptr, nullptr, ns}),
      UnarySmall<&Map16<F>>(op, ns));
#else
  return Floats<F>(op, 2 * ns);
#endif
}

constexpr JoinedTable kRows = {
    Floats16<ExpF>("Exp", 0.2f),
    Floats<Expm1F>("Expm1", 0.3f),
    Floats<LogF>("Log", 0.4f),
    Floats<Log1pF>("Log1p", 0.6f),
    Floats16<TanhF>("Tanh", 0.2f),
    Floats16<SigmoidF>("Sigmoid", 0.3f),
    Floats16<ErfF>("Erf", 0.2f),
    Floats<AsinF>("Asin", 0.4f),
    Floats<AcosF>("Acos", 0.4f),
    Floats<AtanF>("Atan", 0.4f),
    Floats<SoftplusF>("Softplus", 0.8f),
    Floats<EluF>("Elu", 0.35f),
    Floats<SeluF>("Selu", 0.35f),
    Floats<SiluF>("_Silu", 0.4f),
    Floats<GeluTanhF>("_GeluTanh", 0.45f),
    Floats16<GeluErfF>("_GeluErf", 0.2f),
    OneRow({"Sin", kType<float>, kType<float>, &Trig<false>}),
    UnarySmall<&Trig<false>>("Sin", 0.4f),
    OneRow({"Cos", kType<float>, kType<float>, &Trig<true>}),
    UnarySmall<&Trig<true>>("Cos", 0.4f),
    OneRow({"Exp", kType<Complex64>, kType<Complex64>, &ComplexExp, nullptr,
            nullptr, 1.5f}),
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
