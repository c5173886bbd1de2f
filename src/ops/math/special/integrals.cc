// Integrals without a closed form: Dawson's, the exponential, Fresnel's, and
// Spence's dilogarithm. Their kernels are loops (special_loops.cc).
#include "ops/math/special/special.h"

namespace headrace {
namespace {

Status DawsnGrad(GradientContext& g) {
  Value product = g("Mul", {g.input(0), g.output(0)});
  Value one = g.Scalar(g.input(0).dtype(), 1);
  return Flow(g, g("Sub", {one, TimesScalar(g, product, 2)}));
}
Status ExpintGrad(GradientContext& g) {
  const Value& x = g.input(0);
  return Flow(g, g("RealDiv", {g("Exp", {x}), x}));
}
Value Phase(GradientContext& g) {
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
  return Flow(g, g("SelectV2", {at_one, g.Scalar(x.dtype(), -1), slope}));
}

#define HR_INTEGRAL(Name, doc) \
  HR_UNARY(Name, kFloatTypes, doc).Gradient(Name##Grad)
HR_INTEGRAL(Dawsn, "Dawson's integral.");
HR_INTEGRAL(Expint, "The exponential integral Ei.");
HR_INTEGRAL(FresnelCos, "Fresnel's cosine integral.");
HR_INTEGRAL(FresnelSin, "Fresnel's sine integral.");
HR_INTEGRAL(Spence, "Spence's integral, the dilogarithm of 1 - x.");

}  // namespace
}  // namespace headrace
