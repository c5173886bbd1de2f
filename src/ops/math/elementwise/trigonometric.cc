// Sines, hyperbolic sines, their kin and inverses; the sigmoid.
#include "op/spelled_out.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// Sets the gradient to what flows times `slope`.
Status SlopeFlow(GradientContext& g, const Value& slope) {
  // Null where emitting it failed.
  if (slope) g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}
Value One(GradientContext& g) { return g.Scalar(g.input(0).dtype(), 1); }

Status SinGrad(GradientContext& g) {
  return SlopeFlow(g, g("Cos", {ConjOf(g, g.input(0))}));
}
Status CosGrad(GradientContext& g) {
  Value down = g("Neg", {g.grad()});
  Value sin = g("Sin", {ConjOf(g, g.input(0))});
  if (sin) g.set(0, Named(g, "mul", "Mul", {down, sin}));
  return g.status();
}
Status TanGrad(GradientContext& g) {
  Value cos = g("Cos", {ConjOf(g, g.input(0))});
  // 1 / cos^2, in upstream's order of operations.
  Value slope = g("Square", {g("Reciprocal", {cos})});
  if (slope) g.set(0, Named(g, "mul", "Mul", {slope, g.grad()}));
  return g.status();
}
// 1 / sqrt(1 - x^2).
Value AsinSlope(GradientContext& g) {
  Value square = g("Square", {ConjOf(g, g.input(0))});
  return g("Reciprocal", {g("Sqrt", {g("Sub", {One(g), square})})});
}
Status AsinGrad(GradientContext& g) { return SlopeFlow(g, AsinSlope(g)); }
Status AcosGrad(GradientContext& g) {
  Value slope = AsinSlope(g);
  if (slope) g.set(0, Named(g, "mul", "Mul", {g("Neg", {g.grad()}), slope}));
  return g.status();
}
Status AtanGrad(GradientContext& g) {
  Value square = g("Square", {ConjOf(g, g.input(0))});
  Value one = One(g);
  Value sum = Named(g, "Add", "AddV2", {one, square});
  return SlopeFlow(g, g("Reciprocal", {sum}));
}
Status SinhGrad(GradientContext& g) {
  return SlopeFlow(g, g("Cosh", {ConjOf(g, g.input(0))}));
}
Status CoshGrad(GradientContext& g) {
  return SlopeFlow(g, g("Sinh", {ConjOf(g, g.input(0))}));
}
Status AsinhGrad(GradientContext& g) {
  // By the result y: x = sinh(y), whose slope is cosh(y).
  Value slope = g("Cosh", {ConjOf(g, g.output(0))});
  g.set(0, Named(g, "truediv", "RealDiv", {g.grad(), slope}));
  return g.status();
}
Status AcoshGrad(GradientContext& g) {
  // x = cosh(y), see AsinhGrad.
  Value slope = g("Sinh", {ConjOf(g, g.output(0))});
  g.set(0, Named(g, "truediv", "RealDiv", {g.grad(), slope}));
  return g.status();
}
Status AtanhGrad(GradientContext& g) {
  Value square = g("Square", {ConjOf(g, g.input(0))});
  return SlopeFlow(g, g("Reciprocal", {g("Sub", {One(g), square})}));
}
Status TanhGrad(GradientContext& g) {
  g.set(0, g("TanhGrad", {ConjOf(g, g.output(0)), g.grad()}));
  return g.status();
}
Status SigmoidGrad(GradientContext& g) {
  g.set(0, g("SigmoidGrad", {ConjOf(g, g.output(0)), g.grad()}));
  return g.status();
}

// z = dy (1 - y^2).
Status TanhGradGrad(GradientContext& g) {
  Value y = ConjOf(g, g.input(0)), dy = ConjOf(g, g.input(1));
  // The slope of 1 - y^2.
  g.set(0, g("Mul", {g("Mul", {TimesScalar(g, g.grad(), -2), dy}), y}));
  g.set(1, g("TanhGrad", {y, g.grad()}));
  return g.status();
}
// z = dy y (1 - y).
Status SigmoidGradGrad(GradientContext& g) {
  Value y = ConjOf(g, g.input(0)), dy = ConjOf(g, g.input(1));
  Value part = g("Mul", {g.grad(), dy});
  // The slope of y (1 - y) is 1 - 2 y.
  Value down = g("Mul", {TimesScalar(g, part, 2), y});
  g.set(0, g("Sub", {part, down}));
  g.set(1, g("SigmoidGrad", {y, g.grad()}));
  return g.status();
}

OpBuilder TrigonometricOp(const char* name, const char* doc,
                          GradientFn gradient) {
  OpBuilder b = UnaryOp(name, kFloatComplexTypes, doc);
  b.Gradient(gradient).GradientSkips({}, {0});
  return b;
}
// The gradient reads the result, not the argument.
OpBuilder ByResultOp(const char* name, const char* doc, GradientFn gradient) {
  OpBuilder b = UnaryOp(name, kFloatComplexTypes, doc);
  b.Gradient(gradient).GradientSkips({0}, {});
  return b;
}

[[maybe_unused]] const OpRegistrar kTrigonometric[] = {
    TrigonometricOp("Sin", "The sine of x radians.", SinGrad),
    TrigonometricOp("Cos", "The cosine of x radians.", CosGrad),
    TrigonometricOp("Tan", "The tangent of x radians.", TanGrad),
    TrigonometricOp("Asin", "The angle in radians whose sine is x.", AsinGrad),
    TrigonometricOp("Acos", "The angle in radians whose cosine is x.",
                    AcosGrad),
    TrigonometricOp("Atan", "The angle in radians whose tangent is x.",
                    AtanGrad),
    TrigonometricOp("Sinh", "The hyperbolic sine.", SinhGrad),
    TrigonometricOp("Cosh", "The hyperbolic cosine.", CoshGrad),
    TrigonometricOp("Atanh", "The inverse of the hyperbolic tangent.",
                    AtanhGrad),
};
[[maybe_unused]] const OpRegistrar kByResult[] = {
    ByResultOp("Asinh", "The inverse of the hyperbolic sine.", AsinhGrad),
    ByResultOp("Acosh", "The inverse of the hyperbolic cosine.", AcoshGrad),
    ByResultOp("Tanh", "The hyperbolic tangent.", TanhGrad),
    ByResultOp("Sigmoid", "1 / (1 + exp(-x)).", SigmoidGrad),
};

[[maybe_unused]] const OpRegistrar kResultGrads[] = {
    UnaryGradOp("TanhGrad", "The gradient of y = tanh(x): dy * (1 - y^2).")
        .Gradient(TanhGradGrad)
        .GradientSkips({}, {0}),
    UnaryGradOp("SigmoidGrad",
                "The gradient of y = sigmoid(x): dy * y * (1 - y).")
        .Gradient(SigmoidGradGrad)
        .GradientSkips({}, {0}),
};

}  // namespace
}  // namespace headrace
