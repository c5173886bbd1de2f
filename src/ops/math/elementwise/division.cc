// Quotients and remainders.
#include "op/float_ops.h"
#include "op/passes/simplify.h"
#include "op/spelled_out.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

// x / y with the division `divide`; `name`: what upstream's graphs call that.
Status DivisionGrad(GradientContext& g, const char* divide, const char* name) {
  Value grad = g.grad();
  Value x = ConjOf(g, g.input(0)), y = ConjOf(g, g.input(1));
  // -x / y / y and not -x / y^2: y^2 may overflow, and upstream's bits are
  // these.
  const auto quotient = [&](const Value& a) {
    return Named(g, name, divide, {a, y});
  };
  Value to_x = quotient(grad);
  if (!g.wants(1)) {
    g.set(0, g.ReduceTo(to_x, g.input(0)));
    return g.status();
  }
  Value slope = quotient(quotient(g("Neg", {x})));
  Value to_y = Named(g, "mul", "Mul", {grad, slope});
  SetBroadcastAlways(g, to_x, to_y);
  return g.status();
}
Status DivGrad(GradientContext& g) { return DivisionGrad(g, "Div", "Div"); }
Status RealDivGrad(GradientContext& g) {
  return DivisionGrad(g, "RealDiv", "RealDiv");
}
Status DivNoNanGrad(GradientContext& g) {
  return DivisionGrad(g, "DivNoNan", "div_no_nan");
}
Status FloorModGrad(GradientContext& g) {
  Value grad = g.grad();
  // x - floor(x / y) y: the floor is a constant for the slope.
  Value floor = g("FloorDiv", {g.input(0), g.input(1)});
  SetBroadcastAlways(g, grad,
                     Named(g, "mul", "Mul", {grad, g("Neg", {floor})}));
  return g.status();
}
// Where x is not 0, as 1 in x's type.
Value NotZero(GradientContext& g) {
  const Value& x = g.input(0);
  Value is = g("NotEqual", {x, g.Scalar(x.dtype(), 0)});
  return g("Cast", {is}, {{"DstT", x.dtype()}});
}
Status XdivyGrad(GradientContext& g) {
  Value grad = g.grad();
  const Value& y = g.input(1);
  // 1 / y where x is not 0, and 0 elsewhere, as the function itself is.
  Value sx = g("Xdivy", {NotZero(g), y});
  Value sy = g("Xdivy", {g("Neg", {g.input(0)}), g("Square", {y})});
  Value to_x = Named(g, "mul", "Mul", {grad, sx});
  Value to_y = Named(g, "mul", "Mul", {grad, sy});
  g.SetBroadcast(to_x, to_y);
  return g.status();
}
Status XlogyGrad(GradientContext& g) {
  Value grad = g.grad();
  Value sx = g("Xlogy", {NotZero(g), g.input(1)});
  Value sy = g("Xdivy", {g.input(0), g.input(1)});
  Value to_x = Named(g, "mul", "Mul", {grad, sx});
  Value to_y = Named(g, "mul", "Mul", {grad, sy});
  g.SetBroadcast(to_x, to_y);
  return g.status();
}
Status Xlog1pyGrad(GradientContext& g) {
  Value grad = g.grad();
  const Value& y = g.input(1);
  Value sx = g("Xlog1py", {NotZero(g), y});
  Value above = g("AddV2", {y, g.Scalar(y.dtype(), 1)});
  Value sy = g("Xdivy", {g.input(0), above});
  Value to_x = Named(g, "mul", "Mul", {grad, sx});
  Value to_y = Named(g, "mul", "Mul", {grad, sy});
  g.SetBroadcast(to_x, to_y);
  return g.status();
}

constexpr char kDivTypes[] =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, "
    "uint32, uint64, int64, complex64, complex128}";
constexpr char kXTypes[] =
    "T: {half, bfloat16, float, double, complex64, complex128}";

Status SkipByOne(SimplifyContext& c) {
  if (c.is_number(1, 1) && c.keeps_shape(0)) c.Replace(0, c.input(0));
  return c.status();
}

[[maybe_unused]] const OpRegistrar kDivisionOps[] = {
    BinaryOp("Div", kDivTypes, "x / y; between integers, towards 0.")
        .Simplify(SkipByOne)
        .Gradient(DivGrad)
        .GradientSkips({}, {0}),
    BinaryOp("RealDiv", kDivTypes, "x / y.")
        .Traits({OpTrait::kBroadcasts, OpTrait::kCheap})
        .Simplify(SkipByOne)
        .Gradient(RealDivGrad)
        .GradientSkips({}, {0}),
    BinaryOp("DivNoNan",
             "T: {half, float, bfloat16, double, complex64, complex128}",
             "x / y, and 0 wherever y is 0.")
        .Gradient(DivNoNanGrad)
        .GradientSkips({}, {0}),
    BinaryOp("FloorDiv", kDivTypes,
             "The largest integer that is not above x / y.")
        .Gradient(NothingFlows)
        .GradientSkips({0, 1}, {0}),
    BinaryOp("TruncateDiv", kDivTypes, "x / y rounded towards 0.")
        .Gradient(NothingFlows)
        .GradientSkips({0, 1}, {0}),
    BinaryOp("FloorMod",
             "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
             "bfloat16, half, float, double}",
             "x - floor(x / y) * y: the sign is that of y.")
        .Gradient(FloorModGrad)
        .GradientSkips({}, {0}),
    BinaryOp("Mod", "T: {int32, int64, half, half, bfloat16, float, double}",
             "x - trunc(x / y) * y: the sign is that of x."),
    BinaryOp("TruncateMod", "T: {int32, int64, bfloat16, half, float, double}",
             "x - trunc(x / y) * y: the sign is that of x."),
    BinaryOp("Xdivy", kXTypes, "x / y, and 0 wherever x is 0.")
        .Gradient(XdivyGrad)
        .GradientSkips({}, {0}),
    BinaryOp("Xlogy", kXTypes, "x * log(y), and 0 wherever x is 0.")
        .Gradient(XlogyGrad)
        .GradientSkips({}, {0}),
    BinaryOp("Xlog1py", kXTypes, "x * log1p(y), and 0 wherever x is 0.")
        .Gradient(Xlog1pyGrad)
        .GradientSkips({}, {0}),
};

const FloatOps division_float_ops({"RealDiv"}, FloatOpsPerElement<1>);

}  // namespace
}  // namespace headrace
