#include "graph/builder.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(GraphBuilder, ReadersOfWhatWaitsDoNotWaitTwice) {
  GraphBuilder b(std::make_shared<Graph>(), GraphBuilder::Kind::kFunction);
  EmitterScope emits(&b);
  OpScope s;
  const Value x = *b.AddPlaceholder("x", DType::kFloat, Shape(), nullptr);
  s.All("NoOp", {});
  s("Neg", {x});
  Node* first = b.graph()->FindNode("NoOp");
  Node* second = b.graph()->FindNode("Neg");
  EXPECT_TRUE(b.SetControlInputs({first}).empty());
  const Value y = s("Abs", {x});
  s("Sqrt", {y});
  b.SetControlInputs({first, second});
  s("Exp", {y});
  // An argument made within waits for nothing.
  s("Sin", {*b.AddPlaceholder("y", DType::kFloat, Shape(), nullptr)});
  b.SetControlInputs({first});
  s("Cos", {y});
  b.SetControlInputs({});
  s("Tan", {x});
  ASSERT_TRUE(s.ok()) << s.status();
  const auto waits = [&](const char* name) {
    const auto found = b.graph()->FindNode(name)->control_inputs();
    return std::vector<Node*>(found.begin(), found.end());
  };
  using Nodes = std::vector<Node*>;
  EXPECT_EQ(waits("Abs"), Nodes({first}));
  EXPECT_EQ(waits("Sqrt"), Nodes());
  EXPECT_EQ(waits("Exp"), Nodes({second}));
  EXPECT_EQ(waits("Sin"), Nodes({first, second}));
  EXPECT_EQ(waits("Cos"), Nodes());
  EXPECT_EQ(waits("Tan"), Nodes());
}

TEST(GraphBuilder, CapturedSizesAreKnownAsFarAsAround) {
  const auto around = std::make_shared<Graph>();
  GraphBuilder outer(around, GraphBuilder::Kind::kFunction);
  Value sizes;
  {
    EmitterScope emits(&outer);
    OpScope s;
    const Value x = *outer.AddPlaceholder(
        "x", DType::kFloat, Shape{2, Shape::kUnknown, 3}, nullptr);
    sizes = s("Shape", {x});
    ASSERT_TRUE(s.ok()) << s.status();
  }
  // A branch within a branch: each hands on what the one around knows.
  GraphBuilder middle(std::make_shared<Graph>(), GraphBuilder::Kind::kFunction);
  const Value handed = *middle.Import(sizes);
  GraphBuilder inner(std::make_shared<Graph>(), GraphBuilder::Kind::kFunction);
  EmitterScope emits(&inner);
  OpScope s;
  const Value made = s("Fill", {handed, Value(Tensor::Scalar<float>(1))});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(made.shape(), (Shape{2, Shape::kUnknown, 3}));
}

}  // namespace
}  // namespace headrace
