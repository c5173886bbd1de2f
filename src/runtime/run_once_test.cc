// What runs ops one at a time: eager calls and the folding of constants, while
// a graph is made and while it is planned.
#include "op/run_once.h"

#include <new>

#include "absl/strings/match.h"
#include "eager/eager_emitter.h"
#include "graph/builder.h"
#include "graph/function.h"
#include "gtest/gtest.h"
#include "op/op.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

Status HandsFloatOn(KernelContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}
HR_OP(TestFloatForInt)
    .Input("x: float")
    .Output("y: int32")
    .Doc("A kernel whose result is not of the type that the op says.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<HandsFloatOn>);

bool rule_throws = false;
HR_OP(TestRuleThrows)
    .Input("x: float")
    .Output("y: int32")
    .Doc("A shape rule that runs out of memory, where told.")
    .Shape([](ShapeContext& c) -> Status {
      if (rule_throws) throw std::bad_alloc();
      c.set_output(0, c.input(0));
      return OkStatus();
    })
    .Cpu(ComputeOwn<HandsFloatOn>);

const Tensor& X() {
  static const Tensor x = Tensor::Vector<float>({1, 2});
  return x;
}

TEST(RunOnce, RefusesResultsOfOtherTypes) {
  const Status ran = RunOp("TestFloatForInt", {X()}).status();
  EXPECT_EQ(ran.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(ran.message(),
                                "op TestFloatForInt: a result of type float "
                                "where output 0 has type int32"))
      << ran;
}

TEST(RunOnce, GuardsTheShapeRuleToo) {
  rule_throws = true;
  const Status ran = RunOp("TestRuleThrows", {X()}).status();
  rule_throws = false;
  EXPECT_EQ(ran.code(), absl::StatusCode::kResourceExhausted) << ran;
}

// A constant of another type would be read as what it is not.
TEST(RunOnce, FoldsNoResultOfAnotherType) {
  GraphBuilder builder(std::make_shared<Graph>(),
                       GraphBuilder::Kind::kFunction);
  OpScope s;
  Value wrong, y;
  {
    EmitterScope scope(&builder);
    Value x = s.Const(X());
    wrong = s("TestFloatForInt", {x});
    y = s("Neg", {wrong});
  }
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(wrong.node()->constant(), nullptr);
  FunctionPtr f =
      MakeFunction(FunctionLibrary::NewName("folds"), builder, {}, {y});
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  std::vector<Tensor> out;
  const Status ran = (*e)->Run({}, {}, &out);
  EXPECT_EQ(ran.code(), absl::StatusCode::kInvalidArgument) << ran;
}

}  // namespace
}  // namespace headrace
