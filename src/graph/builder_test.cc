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

}  // namespace
}  // namespace headrace
