// Gradients that upstream has ops for, and ops with a slope.
#include "ops/math/loops/loop_templates.h"

namespace headrace::HR_LEVEL {
namespace {

// Of the result y and its gradient g.
struct TanhGrad {
  template <typename T>
  HR_VECTOR T Run(T y, T g) {
    return g * (T{1} - y * y);
  }
};
struct SigmoidGrad {
  template <typename T>
  HR_VECTOR T Run(T y, T g) {
    // In upstream's order, as products of floats depend on it.
    return g * y * (T{1} - y);
  }
};
struct SqrtGrad {
  template <typename T>
  HR_VECTOR T Run(T y, T g) {
    return g * T(0.5) / y;
  }
};
struct RsqrtGrad {
  template <typename T>
  HR_VECTOR T Run(T y, T g) {
    return g * T(-0.5) * (y * y * y);
  }
};
struct ReciprocalGrad {
  template <typename T>
  HR_VECTOR T Run(T y, T g) {
    return -g * (y * y);
  }
};
// Of the gradient g and the argument x, or the result y.
struct ReluGrad {
  template <typename T>
  HR_VECTOR T Run(T g, T x) {
    return x > T{0} ? g : T{0};
  }
};
struct Relu6Grad {
  template <typename T>
  HR_VECTOR T Run(T g, T x) {
    // Not &&, which would branch: both sides are computed for vectors.
    return (x > T{0}) & (x < T{6}) ? g : T{0};
  }
};
struct EluGrad {
  template <typename T>
  HR_VECTOR T Run(T g, T y) {
    // For y < 0, exp(x) = y + 1.
    return y < T{0} ? (y + T{1}) * g : g;
  }
};
struct SeluGrad {
  template <typename T>
  HR_VECTOR T Run(T g, T y) {
    // scale * alpha; scale is 1.0507009873554805 (Klambauer et al., 2017).
    return y < T{0} ? g * (y + T(1.75809934084737685994))
                    : g * T(1.05070098735548049342);
  }
};
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
  // Small floats compute in float, a tile at a time.
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

constexpr JoinedTable kRows = {
    BinaryFloats<TanhGrad>("TanhGrad", 0.2f),
    BinaryFloats<SigmoidGrad>("SigmoidGrad", 0.2f),
    BinaryFloats<SqrtGrad>("SqrtGrad", 0.3f),
    BinaryFloats<RsqrtGrad>("RsqrtGrad", 0.2f),
    BinaryFloats<ReciprocalGrad>("ReciprocalGrad", 0.2f),
    BinaryFloats<ReciprocalGrad>("InvGrad", 0.2f),
    BinaryFloats<ReluGrad>("ReluGrad", 0.2f),
    Binary<ReluGrad>("ReluGrad", 0.2f, IntegerTypes()),
    BinaryFloats<Relu6Grad>("Relu6Grad", 0.2f),
    Binary<Relu6Grad>("Relu6Grad", 0.2f, IntegerTypes()),
    BinaryFloats<EluGrad>("EluGrad", 0.2f),
    BinaryFloats<SeluGrad>("SeluGrad", 0.2f),
    BinaryFloats<SoftsignGrad>("SoftsignGrad", 0.3f),
    Binary<SoftplusGradF>("SoftplusGrad", 0.4f, Types<float>()),
    BinarySmall<&Map2<SoftplusGradF, float>>("SoftplusGrad", 0.4f),
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
