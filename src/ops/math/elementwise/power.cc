// Powers, angles of points, neighbours of floats.
#include <cmath>

#include "op/float_ops.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// log(x) where x has one, and 0 elsewhere.
Value SafeLog(GradientContext& g, const Value& x) {
  DType t = x.dtype();
  Value zero = g.Scalar(t, 0);
  Value has = g(IsComplex(t) ? "NotEqual" : "Greater", {x, zero});
  // Both selects: one keeps log from being taken where there is none, as its
  // slope there (infinite, NaN) times 0 would be NaN in second gradients; the
  // other gives 0.
  Value safe = g("SelectV2", {has, x, g.Scalar(t, 1)});
  return g("SelectV2", {has, g("Log", {safe}), zero});
}
// Both in upstream's nodes.
Status SpelledPowGrad(GradientContext& g, const Value& grad, const Value& x,
                      const Value& y) {
  HR_ASSIGN_OR_RETURN(Tensor one, ScalarOf(y.dtype(), 1));
  HR_ASSIGN_OR_RETURN(Tensor zero, ScalarOf(x.dtype(), 0));
  Value scaled = Named(g, "mul", "Mul", {grad, y});
  Value less = Named(g, "sub", "Sub", {y, {"y", std::move(one)}});
  Value power = g("Pow", {x, less});
  Value to_x = Named(g, "mul", "Mul", {scaled, power});
  const char* has_log = IsComplex(x.dtype()) ? "NotEqual" : "Greater";
  Value has = Named(g, has_log, has_log, {x, {"y", std::move(zero)}});
  Value ones = NamedOnesLike(g, "ones_like", x);
  Value log = g("Log", {g("Select", {has, x, ones})});
  Value zeros = NamedZerosLike(g, "zeros_like", x);
  log = g("Select", {has, log, zeros});
  Value z = ConjOf(g, g.output(0));
  Value to_y = Named(g, "mul", "Mul", {Named(g, "mul", "Mul", {grad, z}), log});
  SetSpelledBroadcast(g, to_x, to_y, /*always=*/true);
  return g.status();
}

Status PowGrad(GradientContext& g) {
  Value grad = g.grad();
  Value x = ConjOf(g, g.input(0)), y = ConjOf(g, g.input(1));
  if (SpelledOut::Now()) return SpelledPowGrad(g, grad, x, y);
  if (g.wants(0)) {
    // y x^(y - 1), also right for x = 0 where y > 1.
    Value less = g("Sub", {y, g.Scalar(y.dtype(), 1)});
    Value slope = g("Mul", {y, g("Pow", {x, less})});
    g.set(0, g.ReduceTo(g("Mul", {grad, slope}), g.input(0)));
  }
  if (g.wants(1)) {
    // z log(x): taken as 0 where x <= 0, as upstream.
    Value slope = g("Mul", {ConjOf(g, g.output(0)), SafeLog(g, x)});
    g.set(1, g.ReduceTo(g("Mul", {grad, slope}), g.input(1)));
  }
  return g.status();
}
Status Atan2Grad(GradientContext& g) {
  const Value &y = g.input(0), &x = g.input(1);
  // d atan2(y, x) = (x dy - y dx) / (x^2 + y^2).
  Value squares[] = {g("Square", {y}), g("Square", {x})};
  Value norm = Named(g, "add", "AddV2", {squares[0], squares[1]});
  Value part = Named(g, "truediv", "RealDiv", {g.grad(), norm});
  Value to_y = Named(g, "mul", "Mul", {x, part});
  Value to_x = Named(g, "mul", "Mul", {g("Neg", {y}), part});
  SetBroadcastAlways(g, to_y, to_x);
  return g.status();
}
Status NextAfterGrad(GradientContext& g) {
  Value grad = g.grad();
  // The neighbour moves with the number; the direction has no slope.
  g.set(0, g.ReduceTo(grad, g.input(0)));
  g.set(1, g("ZerosLike", {g.input(1)}));
  return g.status();
}

constexpr auto kNextAfter = [](auto a, auto b) { return std::nextafter(a, b); };

[[maybe_unused]] const OpRegistrar kPowerOps[] = {
    BinaryOp("Pow",
             "T: {bfloat16, float, half, double, int8, int16, int32, int64, "
             "complex64, complex128}",
             "x to the power of y.")
        .Gradient(PowGrad),
};
HR_OP(Atan2)
    .Input("y: T")
    .Input("x: T")
    .Output("z: T")
    .Attr(kFloatTypes)
    .Doc("The angle in (-pi, pi] of the point (x, y).")
    .Shape(BroadcastShape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(Atan2Grad)
    .GradientSkips({}, {0})
    .InPlace({0, 1})
    .Cpu(BinaryKernel);
HR_OP(NextAfter)
    .Input("x1: T")
    .Input("x2: T")
    .Output("output: T")
    .Attr("T: {double, float} = DT_FLOAT")
    .Doc("The float next to x1 in the direction of x2.")
    .Shape(BroadcastShape)
    .Vectorize(VectorizeBroadcast)
    .Gradient(NextAfterGrad)
    .GradientSkips({}, {0})
    .InPlace({0, 1})
    .Cpu(BinaryOf<kNextAfter, float, double>);

const FloatOps power_float_ops({"Pow"}, FloatOpsPerElement<1>);

}  // namespace
}  // namespace headrace
