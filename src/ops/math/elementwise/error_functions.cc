// The normal distribution's functions and the gamma function's logarithm.
#include <cmath>

#include "op/spelled_out.h"
#include "ops/math/constants.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// k * grad * exp(sign * v^2). `sign` is 1, -1 or a half.
Status GaussFlow(GradientContext& g, const Value& v, double k, double sign) {
  if (SpelledOut::Now()) {
    HR_ASSIGN_OR_RETURN(Tensor two, ScalarOf(v.dtype(), 2));
    Value factor = g.Scalar(v.dtype(), k);
    Value scaled = Named(g, "mul", "Mul", {g.grad(), factor});
    Value square = g("Square", {v});
    if (sign < 0) square = g("Neg", {square});
    if (sign == 0.5) {
      square = Named(g, "truediv", "RealDiv", {square, {"y", two}});
    }
    g.set(0, Named(g, "mul", "Mul", {scaled, g("Exp", {square})}));
    return g.status();
  }
  Value power = TimesScalar(g, g("Square", {v}), sign);
  Value slope = TimesScalar(g, g("Exp", {power}), k);
  g.set(0, g("Mul", {g.grad(), slope}));
  return g.status();
}
Status ErfGrad(GradientContext& g) {
  // The slope of erf(x) is 2 / sqrt(pi) exp(-x^2).
  return GaussFlow(g, g.input(0), 2 / std::sqrt(kPi), -1);
}
Status ErfcGrad(GradientContext& g) {
  return GaussFlow(g, g.input(0), -2 / std::sqrt(kPi), -1);
}
Status ErfinvGrad(GradientContext& g) {
  // By the result y: the inverse's slope is 1 over that of erf at y.
  return GaussFlow(g, g.output(0), std::sqrt(kPi) / 2, 1);
}
Status NdtriGrad(GradientContext& g) {
  // The same for the normal distribution: 1 over its density at y.
  return GaussFlow(g, g.output(0), std::sqrt(2 * kPi), 0.5);
}
Status LgammaGrad(GradientContext& g) {
  Value slope = g("Digamma", {g.input(0)});
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}
Status DigammaGrad(GradientContext& g) {
  Value one = g.Scalar(g.input(0).dtype(), 1);
  Value slope = g("Polygamma", {one, g.input(0)});
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}

[[maybe_unused]] const OpRegistrar kErrorFunctions[] = {
    UnaryOp("Erf", kFloatTypes, "The error function.")
        .Traits({OpTrait::kCheap})
        .Gradient(ErfGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Erfc", kFloatTypes, "1 - erf(x), exact for large x.")
        .Gradient(ErfcGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Erfinv", kFloatTypes, "The inverse of the error function.")
        .Gradient(ErfinvGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Ndtri", kFloatTypes,
            "The inverse of the normal distribution's cumulative function.")
        .Gradient(NdtriGrad)
        .GradientSkips({0}, {}),
    UnaryOp("Lgamma", kFloatTypes,
            "The logarithm of the absolute value of the gamma function.")
        .Gradient(LgammaGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Digamma", kFloatTypes, "The derivative of Lgamma.")
        .Gradient(DigammaGrad)
        .GradientSkips({}, {0}),
};

}  // namespace
}  // namespace headrace
