// The pass that asks ops' own rules what is simpler, by rules made for it.
#include "op/passes/simplify.h"

#include "op/op.h"
#include "runtime/test_plan.h"

namespace headrace {
namespace {

Status Same(KernelContext& c) {
  for (int o = 0; o < c.num_outputs(); ++o) c.set_output(o, c.input(0));
  return OkStatus();
}

// (x, x), of which the second is x + x - x where nobody reads the first.
Status SecondAlone(SimplifyContext& c) {
  if (!c.is_read(0)) {
    PlanValue twice = c("AddV2", {c.input(0), c.input(0)});
    c.Replace(1, c("Sub", {twice, c.input(0)}));
  }
  return c.status();
}
Status TwoShapes(ShapeContext& c) {
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return OkStatus();
}
HR_OP(SimplifyTestTwice)
    .Input("x: float")
    .Output("y: float")
    .Output("z: float")
    .Shape(TwoShapes)
    .Simplify(SecondAlone)
    .Cpu(ComputeOwn<Same>);

// x * (2 - 1): the number is found while the plan is made, and goes.
Status TimesFoldedOne(SimplifyContext& c) {
  PlanValue one = c("Sub", {c.Constant(Tensor::Scalar(2.0f)),
                            c.Constant(Tensor::Scalar(1.0f))});
  c.Replace(0, c("Mul", {c.input(0), one}));
  return c.status();
}
HR_OP(SimplifyTestFolded)
    .Input("x: float")
    .Output("y: float")
    .Shape(UnchangedShape)
    .Simplify(TimesFoldedOne)
    .Cpu(ComputeOwn<Same>);

// Says something, and then fails.
Status Fails(SimplifyContext& c) {
  c.Replace(0, c("Neg", {c.input(0)}));
  c("NoSuchOp", {c.input(0)});
  return c.status();
}
HR_OP(SimplifyTestFails)
    .Input("x: float")
    .Output("y: float")
    .Shape(UnchangedShape)
    .Simplify(Fails)
    .Cpu(ComputeOwn<Same>);

// Whether a step of the plan runs the op; its name may be another step's.
bool Has(const std::string& plan, const std::string& op) {
  return plan.find("= " + op + "(") != std::string::npos;
}

TEST(Simplify, ARuleMayAskWhoReads) {
  std::string plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        return {s.All("SimplifyTestTwice", {in[0]})[1]};
      },
      {Numbers(Shape{8})});
  EXPECT_FALSE(Has(plan, "SimplifyTestTwice")) << plan;
  plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        ValueList both = s.All("SimplifyTestTwice", {in[0]});
        return {both[0], both[1]};
      },
      {Numbers(Shape{8})});
  EXPECT_TRUE(Has(plan, "SimplifyTestTwice")) << plan;
}

TEST(Simplify, WhatARuleEmitsIsFoldedAndSimplified) {
  std::string plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        return {s("Square", {s("SimplifyTestFolded", {in[0]})})};
      },
      {Numbers(Shape{8})});
  EXPECT_EQ(Lines(plan), 1) << plan;
}

TEST(Simplify, ARuleThatFailsChangesNothing) {
  std::string plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        return {s("Square", {s("SimplifyTestFails", {in[0]})})};
      },
      {Numbers(Shape{8})});
  EXPECT_TRUE(Has(plan, "SimplifyTestFails")) << plan;
  EXPECT_EQ(Lines(plan), 2) << plan;
}

TEST(Simplify, IdleOpsGo) {
  std::string plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        Value one = s.Const(Tensor::Scalar(1.0f));
        Value x = s("StopGradient", {s("Identity", {in[0]})});
        x = s("Reshape", {x, s.Int32s({4, 6})});
        x = s("BroadcastTo", {s("Squeeze", {x}), s.Int32s({4, 6})});
        x = s("Cast", {x}, {{"DstT", DType::kFloat}});
        x = s("RealDiv", {s("Mul", {one, x}), one});
        ValueList all = s.All("IdentityN", {x, s("AddN", {x})});
        return {s("Square", {all[0]}), s("Neg", {all[1]})};
      },
      {Numbers(Shape{4, 6})});
  EXPECT_EQ(Lines(plan), 2) << plan;  // Square and Neg
}

TEST(Simplify, NumbersOfShapesAreKnown) {
  std::string plan = Compare(
      [](OpScope& s, const Values& in) -> std::vector<Value> {
        Value shape = s("Shape", {in[0]}, {{"out_type", DType::kInt64}});
        return {shape, s("Size", {in[0]}), s("Rank", {in[0]})};
      },
      {Numbers(Shape{4, 6})});
  EXPECT_EQ(Lines(plan), 0) << plan;
}

}  // namespace
}  // namespace headrace
