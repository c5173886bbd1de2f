// Branches and loops of TensorFlow 1's nodes: how they are built, and their
// gradients.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "autodiff/function_gradient.h"
#include "graph/builder.h"
#include "gtest/gtest.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

// A graph of a session that is being made: tf.cond and tf.while_loop make nodes
// as control_flow/frames.py does.
class FrameGraph {
 public:
  using Branch = std::function<Value()>;
  using Test = std::function<Value(const std::vector<Value>&)>;
  using Turn = std::function<std::vector<Value>(const std::vector<Value>&)>;

  FrameGraph()
      : b(std::make_shared<Graph>(), GraphBuilder::Kind::kPlain), emits_(&b) {}

  Value Number(double v) { return s.Scalar(DType::kFloat, v); }
  Value Placeholder(StringView name) {
    return *b.AddPlaceholder(name, DType::kFloat, Shape(), nullptr);
  }

  Value Cond(const Value& pred, const Branch& then, const Branch& otherwise) {
    const ValueList sides = s.All("Switch", {pred, pred});
    const Value off = s("Identity", {sides[0]}), on = s("Identity", {sides[1]});
    const Value chosen = s("Identity", {pred});
    FlowContext* outer = b.context();
    const auto make = [&](const Value& pivot, int side, const Branch& branch) {
      auto* c = b.NewContext<BranchContext>(outer, chosen, pivot, side);
      ContextScope in(&b, c);
      return Checked(c->Import(branch()));
    };
    const Value f = make(off, 0, otherwise), t = make(on, 1, then);
    return s("Merge", {f, t});
  }

  // What the variables are behind the loop.
  std::vector<Value> While(const Test& test, const Turn& turn,
                           const std::vector<Value>& first,
                           bool back_prop = true) {
    FlowContext* outer = b.context();
    auto* c =
        b.NewContext<LoopContext>(outer, b.UniqueScope("while"), 10, back_prop);
    std::vector<Value> merges, now, exits;
    for (Value v : first) {
      if (outer) v = Checked(outer->Import(v));
      const Value in = Checked(c->Enter(v, /*constant=*/false));
      merges.push_back(Checked(b.EmitIn("Merge", c, {in, in})));
    }
    ContextScope in(&b, c);
    c->set_pivot(merges[0].node());
    const Value holds = s("LoopCond", {test(merges)});
    for (const Value& m : merges) {
      const Value off = Checked(b.EmitIn("Switch", c, {m, holds}));
      now.push_back(s("Identity", {b.graph()->Output(off.node(), 1)}));
      if (now.size() == 1) c->set_pivot(now[0].node());
      exits.push_back(Checked(b.EmitIn("Exit", c, {off})));
    }
    const std::vector<Value> after = turn(now);
    for (size_t i = 0; i < merges.size(); ++i) {
      const Value next = s("NextIteration", {after[i]});
      merges[i].node()->SetInput(1, EdgeOf(next));
    }
    return exits;
  }

  GraphBuilder b;
  OpScope s;

 private:
  static Value Checked(StatusOr<Value> v) {
    EXPECT_TRUE(v.ok()) << v.status();
    return v.ok() ? *std::move(v) : Value();
  }

  EmitterScope emits_;
};

// "Op input:i ^control".
std::string NodeText(const GraphBuilder& b, StringView name) {
  const Node* n = b.graph()->FindNode(name);
  if (n == nullptr) return absl::StrCat("no ", name);
  std::vector<std::string> parts = {std::string(n->op().name())};
  for (const Edge& e : n->inputs()) {
    parts.push_back(e.index ? absl::StrCat(e.node->name(), ":", e.index)
                            : e.node->name());
  }
  for (const Node* c : n->control_inputs()) {
    parts.push_back(absl::StrCat("^", c->name()));
  }
  return absl::StrJoin(parts, " ");
}

TEST(FlowContext, BranchesReadThroughSwitches) {
  FrameGraph g;
  const Value x = g.Placeholder("x");
  const Value pred = g.s("Greater", {x, g.Number(1)});
  g.Cond(
      pred,
      [&] {
        return g.s("Mul", {x, x});
      },
      [&] { return g.s("Neg", {g.Number(3)}); });
  ASSERT_TRUE(g.s.ok()) << g.s.status();
  EXPECT_EQ(NodeText(g.b, "Mul"), "Mul Mul/Switch:1 Mul/Switch:1");
  EXPECT_EQ(NodeText(g.b, "Mul/Switch"), "Switch x Identity_2");
  // What reads nothing lives where its branch does.
  EXPECT_EQ(NodeText(g.b, "Neg"), "Neg Const_1");
  EXPECT_EQ(NodeText(g.b, "Const_1"), "Const ^Identity");
  EXPECT_EQ(NodeText(g.b, "Merge"), "Merge Neg Mul");
}

TEST(FlowContext, LoopsReadWhatStaysThroughConstantEnters) {
  FrameGraph g;
  const Value x = g.Placeholder("x");
  g.While(
      [&](const auto& v) {
        return g.s("Less", {v[0], g.Number(9)});
      },
      [&](const auto& v) -> std::vector<Value> {
        return {g.s("Mul", {v[0], x})};
      },
      {x});
  ASSERT_TRUE(g.s.ok()) << g.s.status();
  EXPECT_EQ(NodeText(g.b, "Mul"), "Mul Identity Mul/Enter");
  EXPECT_EQ(NodeText(g.b, "Mul/Enter"), "Enter x");
  EXPECT_TRUE(
      g.b.graph()->FindNode("Mul/Enter")->op().bool_attr("is_constant"));
  EXPECT_EQ(NodeText(g.b, "Merge"), "Merge Enter NextIteration");
  EXPECT_EQ(NodeText(g.b, "Const"), "Const ^Merge");
}

TEST(FlowContext, WhatComesFromFarComesInLevelByLevel) {
  FrameGraph g;
  const Value x = g.Placeholder("x");
  g.While(
      [&](const auto& v) {
        return g.s("Less", {v[0], g.Number(9)});
      },
      [&](const auto& v) -> std::vector<Value> {
        return {g.Cond(
            g.s("Less", {v[0], g.Number(4)}),
            [&] {
              return g.s("Mul", {v[0], x});
            },
            [&] { return v[0]; })};
      },
      {x});
  ASSERT_TRUE(g.s.ok()) << g.s.status();
  EXPECT_EQ(NodeText(g.b, "Mul"), "Mul Mul/Switch:1 Mul/Switch_1:1");
  EXPECT_EQ(NodeText(g.b, "Mul/Switch_1"), "Switch Mul/Enter Identity_3");
  EXPECT_EQ(NodeText(g.b, "Mul/Enter"), "Enter x");
}

TEST(FlowContext, NobodyReadsIntoALoopFromOutside) {
  FrameGraph g;
  Value inside;
  const auto test = [&](const auto& v) {
    return g.s("Less", {v[0], g.Number(9)});
  };
  g.While(test,
          [&](const auto& v) -> std::vector<Value> {
            inside = g.s("Neg", {v[0]});
            return {inside};
          },
          {g.Placeholder("x")});
  ASSERT_TRUE(g.s.ok()) << g.s.status();
  OpScope outside;
  outside("Neg", {inside});
  EXPECT_EQ(std::string(outside.status().message()),
            "Cannot use 'Neg' as input to 'Neg_1' because 'Neg' is in a while "
            "loop. See info log for more details.");
}

TEST(FlowContext, ARefusedNodeLeavesNoContextBehind) {
  FrameGraph g;
  const Value x = g.Placeholder("x");
  g.Cond(
      g.s("Greater", {x, g.Number(1)}),
      [&] {
        OpScope refused;
        refused("MatMul", {x, x});
        EXPECT_FALSE(refused.ok());
        return x;
      },
      [&] { return x; });
  ASSERT_TRUE(g.s.ok()) << g.s.status();
  EXPECT_EQ(g.b.ContextOf(*g.b.graph()->FindNode("Merge")), nullptr);
}

// A graph of one placeholder, x.
struct LoopProgram : FrameGraph {
  Value x = Placeholder("x");

  Value Less(const Value& a, double most) {
    return s("Less", {a, Number(most)});
  }
  // `turn` as often as `turns` says, from `first`.
  Value Repeat(int turns, const Value& first,
               const std::function<Value(const Value&)>& turn) {
    return While([&](const auto& v) { return Less(v[0], turns); },
                 [&](const auto& v) -> std::vector<Value> {
                   return {s("AddV2", {v[0], Number(1)}), turn(v[1])};
                 },
                 {Number(0), first})[1];
  }
  StatusOr<Value> Slope(const Value& y) {
    GraphBuilder* builder = &b;
    HR_ASSIGN_OR_RETURN(std::vector<Gradient> found,
                        GraphGradients({y}, {x}, {}, {{&builder, 1}, {}}));
    return Densify(s, found[0]);
  }
  float At(const Value& y, float at) {
    auto e =
        Executable::Make(*b.graph(), {EdgeOf(x)}, {EdgeOf(y)}, {}, nullptr);
    EXPECT_TRUE(e.ok()) << e.status();
    if (!e.ok()) return 0;
    RunServices services;
    std::vector<Tensor> in = {Tensor::Scalar<float>(at)}, out;
    Status run = (*e)->Run(services, absl::MakeSpan(in), &out);
    EXPECT_TRUE(run.ok()) << run;
    return run.ok() ? out[0].data<float>()[0] : 0;
  }
  // y, its slope and the slope of that at `at`.
  void Check(const Value& y, float at, float value, float slope, float second) {
    ASSERT_TRUE(s.ok()) << s.status();
    StatusOr<Value> dy = Slope(y);
    ASSERT_TRUE(dy.ok()) << dy.status();
    StatusOr<Value> ddy = Slope(*dy);
    ASSERT_TRUE(ddy.ok()) << ddy.status();
    EXPECT_FLOAT_EQ(At(y, at), value);
    EXPECT_FLOAT_EQ(At(*dy, at), slope);
    EXPECT_FLOAT_EQ(At(*ddy, at), second);
  }
};

TEST(LoopWalk, WhatGoesRoundAndWhatStays) {
  LoopProgram p;  // x * x * x * x
  const Value y = p.Repeat(3, p.x, [&](const Value& v) {
    return p.s("Mul", {v, p.x});
  });
  p.Check(y, 2, 16, 32, 48);
}

TEST(LoopWalk, LoopsThatDoNotTurn) {
  LoopProgram p;
  const Value y = p.Repeat(0, p.s("Square", {p.x}), [&](const Value& v) {
    return p.s("Mul", {v, p.x});
  });
  p.Check(y, 3, 9, 6, 2);
}

TEST(LoopWalk, BranchesOutsideOfLoops) {
  LoopProgram p;
  const Value y = p.Cond(
      p.Less(p.x, 2), [&] { return p.s("Square", {p.x}); },
      [&] {
        return p.s("Mul", {p.x, p.Number(5)});
      });
  p.Check(y, 1.5, 2.25, 3, 2);
  p.Check(y, 3, 15, 5, 0);
}

TEST(LoopWalk, BranchesWithinLoops) {
  LoopProgram p;  // of 3: 3 * 3, then 9 + 3, then 12 + 3
  const Value y = p.Repeat(3, p.x, [&](const Value& v) {
    return p.Cond(
        p.Less(v, 4),
        [&] {
          return p.s("Mul", {v, p.x});
        },
        [&] {
          return p.s("AddV2", {v, p.x});
        });
  });
  p.Check(y, 3, 15, 8, 2);
}

TEST(LoopWalk, LoopsWithinLoops) {
  LoopProgram p;  // x to the 5th
  const Value y = p.Repeat(2, p.x, [&](const Value& v) {
    return p.Repeat(2, v, [&](const Value& w) { return p.s("Mul", {w, p.x}); });
  });
  p.Check(y, 2, 32, 80, 160);
}

TEST(LoopWalk, LoopsWithinBranches) {
  LoopProgram p;
  const Value y = p.Cond(
      p.Less(p.x, 4),
      [&] {
        return p.Repeat(2, p.x, [&](const Value& v) {
          return p.s("Mul", {v, p.x});
        });
      },
      [&] { return p.x; });
  p.Check(y, 2, 8, 12, 12);
  p.Check(y, 5, 5, 1, 0);
}

TEST(LoopWalk, ArraysThatALoopWrites) {
  LoopProgram p;  // x + x * x + x * x * x
  const ValueList array =
      p.s.All("TensorArrayV3", {p.s.Int32(3)},
              {{"dtype", DType::kFloat}, {"clear_after_read", false}});
  const std::vector<Value> out = p.While(
      [&](const auto& v) {
        return p.s("Less", {v[0], p.s.Int32(3)});
      },
      [&](const auto& v) -> std::vector<Value> {
        return {p.s("AddV2", {v[0], p.s.Int32(1)}), p.s("Mul", {v[1], p.x}),
                p.s("TensorArrayWriteV3", {array[0], v[0], v[1], v[2]})};
      },
      {p.s.Int32(0), p.x, array[1]});
  const Value all =
      p.s("TensorArrayGatherV3", {array[0], p.s.Int32s({0, 1, 2}), out[2]},
          {{"dtype", DType::kFloat}, {"element_shape", Shape()}});
  p.Check(p.s("Sum", {all, p.s.Int32(0)}), 2, 14, 17, 14);
}

TEST(LoopWalk, NoGradientWithoutBackProp) {
  LoopProgram p;
  const std::vector<Value> out =
      p.While([&](const auto& v) { return p.Less(v[0], 9); },
              [&](const auto& v) -> std::vector<Value> {
                return {p.s("Mul", {v[0], p.x})};
              },
              {p.x}, /*back_prop=*/false);
  StatusOr<Value> slope = p.Slope(out[0]);
  ASSERT_TRUE(slope.ok()) << slope.status();
  EXPECT_FALSE(*slope);
}

TEST(LoopWalk, LoopsThatAreNotWholeAreRefused) {
  LoopProgram p;
  auto* c = p.b.NewContext<LoopContext>(nullptr, "odd", 10, true);
  const Value in = *c->Enter(p.x, /*constant=*/false);
  const Value out = *p.b.EmitIn("Exit", c, {in});
  EXPECT_EQ(std::string(p.Slope(out).status().message()),
            "no gradient through the loop 'odd': its variables do not go round "
            "through Enter, Merge, Switch and NextIteration");
}

TEST(LoopWalk, ValuesOfATurnHaveNoGradientOutside) {
  LoopProgram p;
  Value inside;
  p.Repeat(3, p.x, [&](const Value& v) {
    return inside = p.s("Mul", {v, p.x});
  });
  EXPECT_EQ(std::string(p.Slope(inside).status().message()),
            "Cannot use 'Mul' as input to 'gradients' because 'Mul' is in a "
            "while loop. See info log for more details.");
}

}  // namespace
}  // namespace headrace
