// Integrals without a closed form: Dawson's, the exponential, Fresnel's, and
// Spence's dilogarithm. Their kernels are loops (special_loops.cc).
#include "ops/math/special/special.h"

namespace headrace {
namespace {

Status DawsnGrad(GradientContext& g) {
  Value product = g("Mul", {g.input(0), g.output(0)});
  Value one = g.Scalar(g.input(0).dtype(), 1);
  // D' = 1 - 2 x D.
  return Flow(g, g("Sub", {one, TimesScalar(g, product, 2)}));
}
Status ExpintGrad(GradientContext& g) {
  const Value& x = g.input(0);
  // Ei' = e^x / x.
  return Flow(g, g("RealDiv", {g("Exp", {x}), x}));
}
Value Phase(GradientContext& g) {
  // cos(pi x^2 / 2) and sin(pi x^2 / 2).
  return TimesScalar(g, g("Square", {g.input(0)}), kPi / 2);
}
Status FresnelCosGrad(GradientContext& g) {
  return Flow(g, g("Cos", {Phase(g)}));
}
Status FresnelSinGrad(GradientContext& g) {
  return Flow(g, g("Sin", {Phase(g)}));
}
Status SpenceGrad(GradientContext& g) {
  const Value& x = g.input(0);
  Value one = g.Scalar(x.dtype(), 1);
  Value slope = g("RealDiv", {g("Log", {x}), g("Sub", {one, x})});
  Value at_one = g("Equal", {x, one});
  // log(x) / (1 - x) tends to -1 at 1.
  return Flow(g, g("SelectV2", {at_one, g.Scalar(x.dtype(), -1), slope}));
}

[[maybe_unused]] const OpRegistrar kIntegrals[] = {
    UnaryOp("Dawsn", kFloatTypes, "Dawson's integral.").Gradient(DawsnGrad),
    UnaryOp("Expint", kFloatTypes, "The exponential integral Ei.")
        .Gradient(ExpintGrad),
    UnaryOp("FresnelCos", kFloatTypes, "Fresnel's cosine integral.")
        .Gradient(FresnelCosGrad),
    UnaryOp("FresnelSin", kFloatTypes, "Fresnel's sine integral.")
        .Gradient(FresnelSinGrad),
    UnaryOp("Spence", kFloatTypes,
            "Spence's integral, the dilogarithm of 1 - x.")
        .Gradient(SpenceGrad),
};

}  // namespace
}  // namespace headrace
