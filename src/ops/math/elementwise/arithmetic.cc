// Sums, products, minima and maxima of two tensors.
#include "op/float_ops.h"
#include "op/passes/simplify.h"
#include "op/spelled_out.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {
namespace {

Status AddGrad(GradientContext& g) {
  // Where an operand was repeated its gradient is the sum over the repetitions.
  g.SetBroadcast(g.grad(), g.grad());
  return g.status();
}
Status SubGrad(GradientContext& g) {
  Value grad = g.grad();
  if (SpelledOut::Now()) {
    g.SetBroadcast(grad, g("Neg", {grad}));
    return g.status();
  }
  g.set(0, g.ReduceTo(grad, g.input(0)));
  // The constant operand is common: its gradient is not even emitted.
  if (g.wants(1)) g.set(1, g("Neg", {g.ReduceTo(grad, g.input(1))}));
  return g.status();
}
Status MulGrad(GradientContext& g) {
  Value grad = g.grad();
  auto part = [&](int other) {
    // Upstream's gradients of complex functions are conjugate: d(x y)/dx is
    // conj(y).
    return g("Mul", {grad, ConjOf(g, g.input(other))});
  };
  // One after the other, so that their nodes come in upstream's order.
  Value to_x = g.wants(0) ? part(1) : Value();
  Value to_y = g.wants(1) ? part(0) : Value();
  g.SetBroadcast(to_x, to_y);
  return g.status();
}
// mul_no_nan(a, b) is 0 wherever b is.
Status MulNoNanGrad(GradientContext& g) {
  Value grad = g.grad();
  Value to_x = g("MulNoNan", {grad, g.input(1)});
  Value to_y = g("MulNoNan", {g.input(0), grad});
  g.SetBroadcast(to_x, to_y);
  return g.status();
}
Status SquaredDifferenceGrad(GradientContext& g) {
  // 2 (x - y) for x, its negative for y: one part serves both.
  StatusOr<Tensor> two = ScalarOf(g.grad().dtype(), 2);
  HR_RETURN_IF_ERROR(two.status());
  Value twice = g("Mul", {NamedConst(g, "scalar", *two), g.grad()});
  Value apart = Named(g, "sub", "Sub", {g.input(0), g.input(1)});
  Value part = Named(g, "mul", "Mul", {twice, apart});
  if (SpelledOut::Now()) {
    SetSpelledBroadcast(g, part, g("Neg", {part}));
    return g.status();
  }
  g.set(0, g.ReduceTo(part, g.input(0)));
  if (g.wants(1)) g.set(1, g("Neg", {g.ReduceTo(part, g.input(1))}));
  return g.status();
}
// The gradient goes to the operand that `won`, to x when they are equal.
Status ChoiceGrad(GradientContext& g, const char* won) {
  Value grad = g.grad();
  if (!g.ok()) return g.status();
  HR_ASSIGN_OR_RETURN(Tensor none, ScalarOf(grad.dtype(), 0));
  Value zero = NamedConst(g, "zeros_like", std::move(none));
  Value x_won = g(won, {g.input(0), g.input(1)});
  // All of it to one side, as upstream: equal operands do not share it.
  Value to_x = g.wants(0) ? g("SelectV2", {x_won, grad, zero}) : Value();
  Value to_y = g.wants(1) ? g("SelectV2", {x_won, zero, grad}) : Value();
  SetBroadcastAlways(g, to_x, to_y);
  return g.status();
}
Status MaximumGrad(GradientContext& g) { return ChoiceGrad(g, "GreaterEqual"); }
Status MinimumGrad(GradientContext& g) { return ChoiceGrad(g, "LessEqual"); }

// x after y: strings are joined.
constexpr auto kJoin = [](const std::string& a, const std::string& b) {
  return a + b;
};
void JoinLoop(const void* a, const void* b, void* y, int64_t n, int kind) {
  const auto* p = static_cast<const std::string*>(a);
  const auto* q = static_cast<const std::string*>(b);
  auto* to = static_cast<std::string*>(y);
  for (int64_t i = 0; i < n; ++i) {
    // kind: which operand is one element for all (1: the first, 2: the second).
    to[i] = kJoin(p[kind == 1 ? 0 : i], q[kind == 2 ? 0 : i]);
  }
}
Status SkipTimesOne(SimplifyContext& c) {
  // A product with a larger tensor of ones would broadcast.
  if (c.is_number(1, 1) && c.keeps_shape(0)) {
    c.Replace(0, c.input(0));
  } else if (c.is_number(0, 1) && c.keeps_shape(1)) {
    c.Replace(0, c.input(1));
  }
  return c.status();
}

StatusOr<std::unique_ptr<Kernel>> AddKernel(const ResolvedOp& op) {
  if (op.type_attr("T") == DType::kString) {
    // Nanoseconds: a string is allocated for each element.
    return MakeBinaryKernel(op, JoinLoop, 50);
  }
  return BinaryKernel(op);
}

constexpr char kArithmeticTypes[] =
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, "
    "uint32, int64, uint64}";
constexpr char kMulTypes[] =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, "
    "uint32, uint64, int64, complex64, complex128}";

[[maybe_unused]] const OpRegistrar kArithmeticOps[] = {
    BinaryOp("Add",
             "T: {bfloat16, half, float, double, uint8, int8, int16, int32, "
             "int64, complex64, complex128, string}",
             "x + y; strings are joined.")
        .Role(OpRole::kAdd)
        .Traits({OpTrait::kBroadcasts, OpTrait::kCheap})
        .Gradient(AddGrad)
        .Cpu(AddKernel),
    BinaryOp(
        "AddV2",
        "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, "
        "int8, int16, int32, int64, complex64, complex128}",
        "x + y.")
        .Role(OpRole::kAdd)
        .Traits({OpTrait::kBroadcasts, OpTrait::kCheap})
        .Commutative()
        .Aggregate()
        .Gradient(AddGrad),
    BinaryOp("Sub",
             "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
             "int32, int64, complex64, complex128, uint32, uint64}",
             "x - y.")
        .Traits({OpTrait::kBroadcasts, OpTrait::kCheap})
        .Gradient(SubGrad),
    BinaryOp("Mul", kMulTypes, "x * y.")
        .Role(OpRole::kMultiply)
        .Traits({OpTrait::kBroadcasts, OpTrait::kCheap})
        .Simplify(SkipTimesOne)
        .Commutative()
        .Gradient(MulGrad)
        .GradientSkips({}, {0}),
    BinaryOp("MulNoNan", kFloatComplexTypes,
             "x * y, and 0 wherever y is 0, even when x is infinite or NaN.")
        .Gradient(MulNoNanGrad)
        .GradientSkips({}, {0}),
    BinaryOp("SquaredDifference",
             "T: {bfloat16, half, float, double, int32, int64, complex64, "
             "complex128}",
             "conj(x - y) * (x - y).")
        .Traits({OpTrait::kBroadcasts})
        .Commutative()
        .Gradient(SquaredDifferenceGrad)
        .GradientSkips({}, {0}),
    BinaryOp("Maximum", kArithmeticTypes,
             "The larger of x and y; NaN where either is.")
        .Traits({OpTrait::kMovesNumbers, OpTrait::kBroadcasts})
        .Gradient(MaximumGrad)
        .GradientSkips({}, {0}),
    BinaryOp("Minimum", kArithmeticTypes,
             "The smaller of x and y; NaN where either is.")
        .Traits({OpTrait::kMovesNumbers, OpTrait::kBroadcasts})
        .Gradient(MinimumGrad)
        .GradientSkips({}, {0}),
};

const FloatOps arithmetic_float_ops({"Add", "AddV2", "Sub", "Mul", "Maximum",
                                     "Minimum"},
                                    FloatOpsPerElement<1>);
const FloatOps squared_difference_float_ops({"SquaredDifference"},
                                            FloatOpsPerElement<2>);

}  // namespace
}  // namespace headrace
