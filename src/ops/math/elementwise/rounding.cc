// Signs, absolute values, rounding, and tests of floating-point numbers.
#include "op/float_ops.h"
#include "op/spelled_out.h"
#include "op/vectorize.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

Status AbsGrad(GradientContext& g) {
  Value sign = g("Sign", {g.input(0)});
  g.set(0, Named(g, "mul", "Mul", {g.grad(), sign}));
  return g.status();
}
Status NegGrad(GradientContext& g) {
  g.set(0, g("Neg", {g.grad()}));
  return g.status();
}
// x / |x| of a complex number turns with x: what of d lies along it is lost.
Status SignGrad(GradientContext& g) {
  const Value& x = g.input(0);
  const DType dtype = x.dtype();
  if (!IsComplex(dtype)) {
    // Zeros and not None, as upstream.
    g.set(0, SpelledOut::Now() ? NamedZerosLike(g, "zeros_like", x)
                               : g("ZerosLike", {x}));
    return g.status();
  }
  const DType real =
      dtype == DType::kComplex64 ? DType::kFloat : DType::kDouble;
  const Value y = g("Sign", {x});
  const AttrMap to_complex = {{"DstT", dtype}};
  Value along =
      g("Real", {g("Mul", {g.grad(), g("Conj", {y})})}, {{"Tout", real}});
  Value across =
      g("Sub", {g.grad(), g("Mul", {y, g("Cast", {along}, to_complex)})});
  Value size = g("ComplexAbs", {x}, {{"Tout", real}});
  g.set(0, g("DivNoNan", {across, g("Cast", {size}, to_complex)}));
  return g.status();
}

constexpr char kSignedTypes[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, "
    "complex128}";

[[maybe_unused]] const OpRegistrar kRoundingOps[] = {
    UnaryOp("Abs",
            "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
            "The absolute value.")
        .Gradient(AbsGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Neg", kSignedTypes, "-x.")
        .Traits({OpTrait::kCheap})
        .Gradient(NegGrad)
        .GradientSkips({0}, {0}),
    UnaryOp("Sign", kSignedTypes,
            "-1, 0 or 1; for complex numbers x / |x|, or 0.")
        .Gradient(SignGrad)
        .GradientSkips({}, {0}),
    UnaryOp("Ceil", kFloatTypes, "The smallest integer that is not below x.")
        .Gradient(NothingFlows)
        .GradientSkips({0}, {0}),
    UnaryOp("Floor", kFloatTypes, "The largest integer that is not above x.")
        .Gradient(NothingFlows)
        .GradientSkips({0}, {0}),
    UnaryOp("Rint", kFloatTypes, "The nearest integer; of two, the even one.")
        .Gradient(NothingFlows)
        .GradientSkips({0}, {0}),
    UnaryOp("Round", kSignedTypes, "The nearest integer; of two, the even one.")
        .Gradient(NothingFlows)
        .GradientSkips({0}, {0}),
};

OpBuilder FloatTestOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("x: T")
      .Output("y: bool")
      .Attr(kFloatTypes)
      .Doc(doc)
      .Shape(UnchangedShape)
      .Vectorize(VectorizeBroadcast)
      .Cpu(UnaryKernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kFloatTests[] = {
    FloatTestOp("IsNan", "Whether x is not a number."),
    FloatTestOp("IsInf", "Whether x is an infinity."),
    FloatTestOp("IsFinite", "Whether x is neither infinite nor not a number."),
};

const FloatOps negation_float_ops({"Neg"}, FloatOpsPerElement<1>);

}  // namespace
}  // namespace headrace
