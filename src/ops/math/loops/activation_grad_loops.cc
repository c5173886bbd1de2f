// Gradients that upstream has ops for, and ops with a slope.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

// Of the result y and its gradient g.
#define HR_FUNCTION(Name, a, b, expression) \
  struct Name {                             \
    template <typename T>                   \
    HR_VECTOR T Run(T a, T b) {             \
      return expression;                    \
    }                                       \
  };
HR_FUNCTION(TanhGrad, y, g, g*(T{1} - y * y))
HR_FUNCTION(SigmoidGrad, y, g, g* y*(T{1} - y))
HR_FUNCTION(SqrtGrad, y, g, g* T(0.5) / y)
HR_FUNCTION(RsqrtGrad, y, g, g* T(-0.5) * (y * y * y))
HR_FUNCTION(ReciprocalGrad, y, g, -g*(y* y))
// Of the gradient g and the argument x, or the result y.
HR_FUNCTION(ReluGrad, g, x, x > T{0} ? g : T{0})
HR_FUNCTION(Relu6Grad, g, x, (x > T{0}) & (x < T{6}) ? g : T{0})
HR_FUNCTION(EluGrad, g, y, y < T{0} ? (y + T{1}) * g : g)
HR_FUNCTION(SeluGrad, g, y,
            y < T{0} ? g * (y + T(1.75809934084737685994))
                     : g * T(1.05070098735548049342))
#undef HR_FUNCTION
struct SoftsignGrad {
  template <typename T>
  HR_VECTOR T Run(T g, T x) {
    const T d = T{1} + (x < 0 ? -x : x);
    return g / (d * d);
  }
};
struct SoftplusGradF {
  HR_VECTOR float Run(float g, float x) { return g * Sigmoid(x); }
};

template <typename T>
void LeakyRelu(const void* x, void* y, int64_t n, double parameter) {
  const T* a = static_cast<const T*>(x);
  T* r = static_cast<T*>(y);
  const T alpha = static_cast<T>(parameter);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = a[i] > 0 ? a[i] : a[i] * alpha;
}

template <typename T>
void LeakyReluGrad(const void* gradients, const void* features, void* y,
                   int64_t n, double parameter) {
  const T* g = static_cast<const T*>(gradients);
  const T* x = static_cast<const T*>(features);
  T* r = static_cast<T*>(y);
  const T alpha = static_cast<T>(parameter);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) r[i] = x[i] > 0 ? g[i] : g[i] * alpha;
}

template <typename S>
void LeakyReluSmall(const void* x, void* y, int64_t n, double parameter) {
  float tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    Widen(static_cast<const S*>(x) + i, tile, m);
    LeakyRelu<float>(tile, tile, m, parameter);
    Narrow(tile, static_cast<S*>(y) + i, m);
  }
}

template <typename S>
void LeakyReluGradSmall(const void* g, const void* x, void* y, int64_t n,
                        double parameter) {
  float a[kTile], b[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    Widen(static_cast<const S*>(g) + i, a, m);
    Widen(static_cast<const S*>(x) + i, b, m);
    LeakyReluGrad<float>(a, b, a, m, parameter);
    Narrow(a, static_cast<S*>(y) + i, m);
  }
}

constexpr LoopEntry kRows[] = {
    HR_BINARY_FLOATS("TanhGrad", TanhGrad, 0.2f),
    HR_BINARY_FLOATS("SigmoidGrad", SigmoidGrad, 0.2f),
    HR_BINARY_FLOATS("SqrtGrad", SqrtGrad, 0.3f),
    HR_BINARY_FLOATS("RsqrtGrad", RsqrtGrad, 0.2f),
    HR_BINARY_FLOATS("ReciprocalGrad", ReciprocalGrad, 0.2f),
    HR_BINARY_FLOATS("InvGrad", ReciprocalGrad, 0.2f),
    HR_BINARY_FLOATS("ReluGrad", ReluGrad, 0.2f),
    HR_INTEGER_TYPES(HR_BINARY, "ReluGrad", ReluGrad, 0.2f),
    HR_BINARY_FLOATS("Relu6Grad", Relu6Grad, 0.2f),
    HR_INTEGER_TYPES(HR_BINARY, "Relu6Grad", Relu6Grad, 0.2f),
    HR_BINARY_FLOATS("EluGrad", EluGrad, 0.2f),
    HR_BINARY_FLOATS("SeluGrad", SeluGrad, 0.2f),
    HR_BINARY_FLOATS("SoftsignGrad", SoftsignGrad, 0.3f),
    HR_BINARY("SoftplusGrad", SoftplusGradF, float, 0.4f),
    HR_BINARY_SMALL("SoftplusGrad", HR_ARG(Map2<SoftplusGradF, float>), 0.4f),
};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
LoopRows ActivationGradLoops<CpuLevel::HR_LEVEL>() {
  return kRows.All();
}

template <>
ParameterLoop LeakyReluLoop<CpuLevel::HR_LEVEL>(int dtype) {
  if (dtype == kType<float>) return LeakyRelu<float>;
  if (dtype == kType<double>) return LeakyRelu<double>;
  if (dtype == kType<half>) return LeakyReluSmall<half>;
  if (dtype == kType<bfloat16>) return LeakyReluSmall<bfloat16>;
  return nullptr;
}

template <>
ParameterLoop2 LeakyReluGradLoop<CpuLevel::HR_LEVEL>(int dtype) {
  if (dtype == kType<float>) return LeakyReluGrad<float>;
  if (dtype == kType<double>) return LeakyReluGrad<double>;
  if (dtype == kType<half>) return LeakyReluGradSmall<half>;
  if (dtype == kType<bfloat16>) return LeakyReluGradSmall<bfloat16>;
  return nullptr;
}

}  // namespace headrace
