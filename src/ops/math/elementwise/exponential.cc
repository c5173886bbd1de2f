// Exponentials, logarithms, square roots and reciprocals.
#include "op/float_ops.h"
#include "op/spelled_out.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

Status ExpGrad(GradientContext& g) {
  g.set(0, Named(g, "mul", "Mul", {g.grad(), ConjOf(g, g.output(0))}));
  return g.status();
}
Status Expm1Grad(GradientContext& g) {
  // exp(x) anew, and not the result plus 1, which has lost digits below -1.
  Value slope = ConjOf(g, g("Exp", {g.input(0)}));
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}
Status LogGrad(GradientContext& g) {
  // As upstream: dy * (1 / x), whose bits differ from dy / x.
  Value slope = g("Reciprocal", {ConjOf(g, g.input(0))});
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}
Status Log1pGrad(GradientContext& g) {
  Value x = ConjOf(g, g.input(0));
  HR_ASSIGN_OR_RETURN(Tensor one, ScalarOf(x.dtype(), 1));
  Value slope =
      g("Reciprocal", {Named(g, "add", "AddV2", {{"x", std::move(one)}, x})});
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}
Status SquareGrad(GradientContext& g) {
  Value twice = TimesScalar(g, ConjOf(g, g.input(0)), 2);
  g.set(0, g("Mul", {g.grad(), twice}));
  return g.status();
}
Status SqrtGrad(GradientContext& g) {
  // By the result: dy / (2 y) needs no further root.
  g.set(0, g("SqrtGrad", {g.output(0), g.grad()}));
  return g.status();
}
Status RsqrtGrad(GradientContext& g) {
  g.set(0, g("RsqrtGrad", {g.output(0), g.grad()}));
  return g.status();
}
Status ReciprocalGrad(GradientContext& g) {
  g.set(0, g("ReciprocalGrad", {g.output(0), g.grad()}));
  return g.status();
}

// z = dy / (2 conj(y)).
Status SqrtGradGrad(GradientContext& g) {
  // dz/dy = -dy / (2 conj(y)^2) = -part * z / dy, with part = dz / y.
  Value part = g("RealDiv", {g.grad(), g.input(0)});
  g.set(0, g("Neg", {g("Mul", {ConjOf(g, part), g.output(0)})}));
  g.set(1, TimesScalar(g, part, 0.5));
  return g.status();
}
// z = -dy conj(y)^3 / 2.
Status RsqrtGradGrad(GradientContext& g) {
  Value y = ConjOf(g, g.input(0)), grad = ConjOf(g, g.grad());
  // The slope of -y^3 / 2.
  Value part = g("Mul", {TimesScalar(g, grad, -1.5), g.input(1)});
  g.set(0, g("Mul", {part, g("Square", {y})}));
  g.set(1, g("RsqrtGrad", {y, g.grad()}));
  return g.status();
}
// z = -dy conj(y)^2.
Status ReciprocalGradGrad(GradientContext& g) {
  Value y = ConjOf(g, g.input(0)), grad = ConjOf(g, g.grad());
  // The slope of -y^2.
  g.set(0, g("Mul", {g("Mul", {TimesScalar(g, grad, -2), g.input(1)}), y}));
  g.set(1, g("ReciprocalGrad", {y, g.grad()}));
  return g.status();
}

constexpr char kReciprocalTypes[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, "
    "complex128}";

[[maybe_unused]] const OpRegistrar kExponentialOps[] = {
    UnaryOp("Exp", kFloatComplexTypes, "e to the power of x.")
        .Gradient(ExpGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Expm1", kFloatComplexTypes, "exp(x) - 1, exact near 0.")
        .Gradient(Expm1Grad)
        .GradientSkips({}, {0}),
    UnaryOp("Log", kFloatComplexTypes, "The natural logarithm.")
        .Gradient(LogGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Log1p", kFloatComplexTypes, "log(1 + x), exact near 0.")
        .Gradient(Log1pGrad)
        .GradientSkips({}, {0}),
    UnaryOp(
        "Square",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, "
        "uint16, uint32, uint64, complex64, complex128}",
        "x times x.")
        .Traits({OpTrait::kCheap})
        .Gradient(SquareGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Sqrt", kFloatComplexTypes, "The square root.")
        .Gradient(SqrtGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Rsqrt", kFloatComplexTypes, "1 / sqrt(x).")
        .Gradient(RsqrtGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Reciprocal", kReciprocalTypes, "1 / x.")
        .Gradient(ReciprocalGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Inv", kReciprocalTypes, "1 / x; see Reciprocal.")
        .Gradient(ReciprocalGrad)
        .GradientSkips({0}, {}),
    UnaryGradOp("SqrtGrad", "The gradient of y = sqrt(x): dy * 0.5 / y.")
        .Gradient(SqrtGradGrad)
        .GradientSkips({1}, {}),
    UnaryGradOp("RsqrtGrad", "The gradient of y = rsqrt(x): dy * -0.5 * y^3.")
        .Gradient(RsqrtGradGrad)
        .GradientSkips({}, {0}),
    UnaryGradOp("ReciprocalGrad", "The gradient of y = 1 / x: -dy * y^2.")
        .Gradient(ReciprocalGradGrad)
        .GradientSkips({}, {0}),
    UnaryGradOp("InvGrad", "The gradient of y = 1 / x: -dy * y^2.")
        .Gradient(ReciprocalGradGrad)
        .GradientSkips({}, {0}),
};

const FloatOps exponential_float_ops({"Log", "Square", "Reciprocal"},
                                     FloatOpsPerElement<1>);
const FloatOps rsqrt_float_ops({"Rsqrt"}, FloatOpsPerElement<2>);
const FloatOps rsqrt_grad_float_ops({"RsqrtGrad"}, FloatOpsPerElement<4>);

}  // namespace
}  // namespace headrace
