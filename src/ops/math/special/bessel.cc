// Bessel functions of orders 0 and 1.
#include <cmath>

#include "ops/math/special/special.h"

namespace headrace {
namespace {

// --- Gradients. Of order 0 they are the functions of order 1.

// f(x) - y / x, with `at_zero` in the place of what 0 gives.
Value LessQuotient(GradientContext& g, const char* f, double at_zero) {
  const Value& x = g.input(0);
  Value quotient = g("RealDiv", {g.output(0), x});
  Value slope = g("Sub", {g(f, {x}), quotient});
  // At 0 the quotient is 0 / 0; its limit is known.
  Value is_zero = g("Equal", {x, g.Scalar(x.dtype(), 0)});
  return g("SelectV2", {is_zero, g.Scalar(x.dtype(), at_zero), slope});
}

Status BesselI0Grad(GradientContext& g) {
  return Flow(g, g("BesselI1", {g.input(0)}));
}
Status BesselI0eGrad(GradientContext& g) {
  // (exp(-|x|) I0)' = exp(-|x|) I1 - sign(x) exp(-|x|) I0.
  Value sign = g("Sign", {g.input(0)});
  Value part = g("Mul", {sign, g.output(0)});
  return Flow(g, g("Sub", {g("BesselI1e", {g.input(0)}), part}));
}
Status BesselI1Grad(GradientContext& g) {
  // I1' = I0 - I1 / x, and I1 / x tends to 1/2. Upstream gives 1 at 0.
  return Flow(g, LessQuotient(g, "BesselI0", 1));
}
Status BesselI1eGrad(GradientContext& g) {
  const Value& x = g.input(0);
  // exp(-|x|) (I0 - I1 / x) - sign(x) exp(-|x|) I1.
  Value per = g("AddV2", {g("Sign", {x}), g("Reciprocal", {x})});
  Value part = g("Mul", {g.output(0), per});
  Value slope = g("Sub", {g("BesselI0e", {x}), part});
  Value is_zero = g("Equal", {x, g.Scalar(x.dtype(), 0)});
  return Flow(g, g("SelectV2", {is_zero, g.Scalar(x.dtype(), 0.5), slope}));
}
Status BesselJ0Grad(GradientContext& g) {
  return Flow(g, g("Neg", {g("BesselJ1", {g.input(0)})}));
}
Status BesselJ1Grad(GradientContext& g) {
  // J1' = J0 - J1 / x, at 0 its limit 1/2.
  return Flow(g, LessQuotient(g, "BesselJ0", 0.5));
}
Status BesselY0Grad(GradientContext& g) {
  return Flow(g, g("Neg", {g("BesselY1", {g.input(0)})}));
}
Status BesselY1Grad(GradientContext& g) {
  // Y1' = Y0 - Y1 / x.
  Value quotient = g("RealDiv", {g.output(0), g.input(0)});
  return Flow(g, g("Sub", {g("BesselY0", {g.input(0)}), quotient}));
}
Status BesselK0Grad(GradientContext& g) {
  return Flow(g, g("Neg", {g("BesselK1", {g.input(0)})}));
}
Status BesselK0eGrad(GradientContext& g) {
  // (exp(x) K0)' = exp(x) K0 - exp(x) K1.
  return Flow(g, g("Sub", {g.output(0), g("BesselK1e", {g.input(0)})}));
}
Status BesselK1Grad(GradientContext& g) {
  Value quotient = g("RealDiv", {g.output(0), g.input(0)});
  // K1' = -K0 - K1 / x.
  Value k0 = g("Neg", {g("BesselK0", {g.input(0)})});
  return Flow(g, g("Sub", {k0, quotient}));
}
Status BesselK1eGrad(GradientContext& g) {
  const Value& x = g.input(0);
  Value one = g.Scalar(x.dtype(), 1);
  Value per = g("Sub", {one, g("Reciprocal", {x})});
  Value part = g("Mul", {g.output(0), per});
  return Flow(g, g("Sub", {part, g("BesselK0e", {x})}));
}

// --- Kernels.

// Upstream's have no limit at infinity.
double J0(double x) { return std::isinf(x) ? kNan : j0(x); }
double J1(double x) { return std::isinf(x) ? kNan : j1(x); }
double Y(double (*y)(double), double x) {
  if (std::isnan(x) || x == kInf) return kNan;
  // Upstream's at 0 and below, where the functions have no value.
  return x > 0 ? y(x) : -kInf;
}
double Y0(double x) { return Y(y0, x); }
double Y1(double x) { return Y(y1, x); }

template <double (*F)(double)>
constexpr auto kBesselOf = [](auto x) {
  // In single precision upstream's Y1 is not a number at 0.
  if (sizeof(x) == 4 && F == Y1 && x == 0)
    return static_cast<decltype(x)>(kNan);
  return kOf<F>(x);
};

template <double (*F)(double)>
constexpr KernelFactory BesselKernel =
    UnaryOf<kBesselOf<F>, float, double, half, bfloat16>;

// The modified functions are among the loops (special_loops.cc).
[[maybe_unused]] const OpRegistrar kBesselOps[] = {
    UnaryOp("BesselI0", kFloatTypes, "The modified Bessel function I0.")
        .Gradient(BesselI0Grad),
    UnaryOp("BesselI0e", kFloatTypes, "exp(-|x|) I0(x).")
        .Gradient(BesselI0eGrad),
    UnaryOp("BesselI1", kFloatTypes, "The modified Bessel function I1.")
        .Gradient(BesselI1Grad),
    UnaryOp("BesselI1e", kFloatTypes, "exp(-|x|) I1(x).")
        .Gradient(BesselI1eGrad),
    UnaryOp("BesselJ0", kFloatTypes, "The Bessel function J0.")
        .Gradient(BesselJ0Grad)
        .Cpu(BesselKernel<J0>),
    UnaryOp("BesselJ1", kFloatTypes, "The Bessel function J1.")
        .Gradient(BesselJ1Grad)
        .Cpu(BesselKernel<J1>),
    UnaryOp("BesselK0", kFloatTypes, "The modified Bessel function K0.")
        .Gradient(BesselK0Grad),
    UnaryOp("BesselK0e", kFloatTypes, "exp(x) K0(x).").Gradient(BesselK0eGrad),
    UnaryOp("BesselK1", kFloatTypes, "The modified Bessel function K1.")
        .Gradient(BesselK1Grad),
    UnaryOp("BesselK1e", kFloatTypes, "exp(x) K1(x).").Gradient(BesselK1eGrad),
    UnaryOp("BesselY0", kFloatTypes, "The Bessel function Y0.")
        .Gradient(BesselY0Grad)
        .Cpu(BesselKernel<Y0>),
    UnaryOp("BesselY1", kFloatTypes, "The Bessel function Y1.")
        .Gradient(BesselY1Grad)
        .Cpu(BesselKernel<Y1>),
};

}  // namespace
}  // namespace headrace
