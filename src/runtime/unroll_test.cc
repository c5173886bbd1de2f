// Loops of a few known turns are written out in plans, with the bits of the
// same turns run by the loop's own op.
#include "runtime/unroll.h"

#include <random>
#include <set>

#include "runtime/ran_functions.h"
#include "runtime/test_turns.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

const DType kFloats = DType::kFloat;
const DType kInts = DType::kInt32;

// Of a counter that begins at `first` and goes on by `by` while it is below
// `limit`, and variables.
struct CountedLoop {
  CountedLoop(int first, int limit, int by, const ArgTypes& variables,
              const Body& body) {
    ArgTypes all = {{kInts, Shape()}};
    all.insert(all.end(), variables.begin(), variables.end());
    parts.cond = Traced("cond", all, [&](OpScope& s, const Values& in) {
      return Values{s("Less", {in[0], s.Int32(limit)})};
    });
    parts.body = Traced("body", all, [&](OpScope& s, const Values& in) {
      Values out = body(s, in);
      out.insert(out.begin(), s("AddV2", {in[0], s.Int32(by)}));
      return out;
    });
    refs = {{"cond", FuncRef{parts.cond->name, nullptr}},
            {"body", FuncRef{parts.body->name, nullptr}}};
    whole = Traced("whole", variables, [&](OpScope& s, const Values& in) {
      Values state = in;
      state.insert(state.begin(), s.Int32(first));
      ValueList out = s.All("StatelessWhile", state, refs);
      return Values(out.begin(), out.end());
    });
    counter = Tensor::Scalar<int32_t>(first);
  }

  bool is_written_out() const {
    auto plan = ExecutableOf(whole, nullptr);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() &&
           (*plan)->DebugString().find("StatelessWhile") == std::string::npos;
  }
  // By the plan, and by the loop alone: the same values or the same error.
  void Compare(const std::vector<Tensor>& in) const {
    std::vector<Tensor> state = in;
    state.insert(state.begin(), counter);
    const auto want = RunOp("StatelessWhile", state, refs);
    auto plan = ExecutableOf(whole, nullptr);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (int run = 0; run < 2; ++run) {
      std::vector<Tensor> given = in, got;
      const Status s = (*plan)->Run({}, absl::MakeSpan(given), &got);
      ASSERT_EQ(s.code(), want.status().code()) << s << want.status();
      if (s.ok()) ExpectSame(got, *want);
    }
  }

  TurnFunctions parts;
  AttrMap refs;
  FunctionPtr whole;
  Tensor counter;
};

Values Grows(OpScope& s, const Values& in) {
  return {s("AddV2", {s("Mul", {in[1], s.Scalar(kFloats, 1.25)}),
                      s("Cast", {in[0]}, {{"DstT", kFloats}})})};
}

Tensor Ramp(const Shape& shape, float step) {
  Tensor t = *Tensor::Allocate(kFloats, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.data<float>()[i] = static_cast<float>(i % 13 - 4) * step;
  }
  return t;
}

TEST(Unroll, FewTurnsAreWrittenOut) {
  for (int turns = 0; turns <= 30; ++turns) {
    CountedLoop loop(0, turns, 1, {{kFloats, {3}}}, Grows);
    // Two calls a turn are left: what follows from the counter is known.
    EXPECT_EQ(loop.is_written_out(), turns <= 12) << turns;
    loop.Compare({Ramp({3}, 0.5f)});
  }
  // Steps of other sizes, down to none.
  for (int by : {2, 3, 0, -1}) {
    CountedLoop loop(1, 8, by, {{kFloats, {3}}}, Grows);
    EXPECT_EQ(loop.is_written_out(), by > 0) << by;
    if (by > 0) loop.Compare({Ramp({3}, 0.5f)});
  }
}

TEST(Unroll, NodesOfThePlanHaveNamesOfTheirOwn) {
  CountedLoop loop(0, 4, 1, {{kFloats, {3, 5}}},
                   [](OpScope& s, const Values& in) {
                     const Value top = s("Max", {in[1], s.Int32s({0})});
                     return Values{s("Sub", {in[1], top})};
                   });
  ASSERT_TRUE(loop.is_written_out());
  tensorflow::GraphDef def;
  ASSERT_TRUE(PlannedGraph(loop.whole, &def).ok());
  std::set<std::string> names;
  for (const auto& node : def.node()) names.insert(node.name());
  EXPECT_EQ(names.size(), static_cast<size_t>(def.node_size()));
  EXPECT_GT(def.node_size(), 6);
}

TEST(Unroll, ResultsThatAreTheVariablesThemselves) {
  const auto swap = [](OpScope&, const Values& in) {
    return Values{in[2], in[1], in[1]};
  };
  for (int turns : {0, 1, 2, 3}) {
    CountedLoop loop(0, turns, 1,
                     {{kFloats, {3}}, {kFloats, {3}}, {kFloats, {3}}}, swap);
    EXPECT_TRUE(loop.is_written_out());
    loop.Compare({Ramp({3}, 1), Ramp({3}, 2), Ramp({3}, 3)});
  }
}

TEST(Unroll, WhatStaysALoop) {
  const auto divides = [](OpScope& s, const Values& in) {
    return Values{s("FloorDiv", {in[1], s("Sub", {in[1], in[0]})})};
  };
  CountedLoop fails(0, 3, 1, {{kInts, {}}}, divides);
  EXPECT_FALSE(fails.is_written_out());
  fails.Compare({Tensor::Scalar<int32_t>(7)});
  fails.Compare({Tensor::Scalar<int32_t>(0)});

  const auto reads = [](OpScope& s, const Values& in) {
    return Values{s("GatherV2", {in[1], in[0], s.Int32(0)}), in[1]};
  };
  CountedLoop row(0, 3, 1, {{kFloats, {}}, {kFloats, {2}}},
                  [&](OpScope& s, const Values& in) {
                    return reads(s, {in[0], in[2]});
                  });
  EXPECT_FALSE(row.is_written_out());
  row.Compare({Tensor::Scalar<float>(0), Ramp({2}, 1)});

  // Of a size that no call knows.
  CountedLoop open(0, 3, 1, {{kFloats, {-1}}}, Grows);
  EXPECT_FALSE(open.is_written_out());
  open.Compare({Ramp({3}, 1)});

  // How many turns depends on a value.
  FunctionPtr cond =
      Traced("cond", {{kFloats, {}}}, [](OpScope& s, const Values& in) {
        return Values{s("Less", {in[0], s.Scalar(kFloats, 3)})};
      });
  FunctionPtr body =
      Traced("body", {{kFloats, {}}}, [](OpScope& s, const Values& in) {
        return Values{s("AddV2", {in[0], s.Scalar(kFloats, 1)})};
      });
  FunctionPtr whole =
      Traced("whole", {{kFloats, {}}}, [&](OpScope& s, const Values& in) {
        return Values{s("StatelessWhile", {in[0]},
                        {{"cond", FuncRef{cond->name, nullptr}},
                         {"body", FuncRef{body->name, nullptr}}})};
      });
  auto plan = ExecutableOf(whole, nullptr);
  ASSERT_TRUE(plan.ok());
  EXPECT_NE((*plan)->DebugString().find("StatelessWhile"), std::string::npos);
}

TEST(Unroll, LoopsWithinLoops) {
  CountedLoop inner(0, 2, 1, {{kFloats, {3}}}, Grows);
  const auto twice = [&](OpScope& s, const Values& in) {
    ValueList out = s.All("StatelessWhile", {s.Int32(0), in[1]}, inner.refs);
    return Values{
        s("AddV2", {out[1], s("Cast", {in[0]}, {{"DstT", kFloats}})})};
  };
  for (int turns : {2, 3, 50}) {
    CountedLoop outer(0, turns, 1, {{kFloats, {3}}}, twice);
    EXPECT_EQ(outer.is_written_out(), turns < 10) << turns;
    outer.Compare({Ramp({3}, 0.5f)});
  }
}

// One turn of random calls on a matrix, a row and a number.
Values RandomTurn(std::mt19937& random, OpScope& s, Values v) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  const int statements = 1 + below(3);
  for (int k = 0; k < statements; ++k) {
    Value& to = v[1 + below(3)];
    const Value i = s("Cast", {v[0]}, {{"DstT", kFloats}});
    switch (below(7)) {
      case 0:
        to = s("Tanh", {to});
        break;
      case 1:
        to = s("Mul", {to, i});
        break;
      case 2:
        to = s("Sub", {to, v[3]});
        break;
      case 3:
        v[1] = s("AddV2", {v[1], v[2]});
        break;
      case 4:
        v[2] = s("Sum", {v[1], s.Int32s({0})});
        break;
      case 5:
        v[3] = s("Max", {v[2], s.Int32s({0})});
        break;
      default:
        to = s("SelectV2", {s("Less", {v[3], i}), to, s("Neg", {to})});
    }
  }
  return {v[1], v[2], v[3]};
}

TEST(Unroll, RandomTurnsHaveTheBitsOfTheLoop) {
  int written = 0;
  for (int seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int turns = static_cast<int>(random() % 7);
    CountedLoop loop(0, turns, 1,
                     {{kFloats, {2, 5}}, {kFloats, {5}}, {kFloats, {}}},
                     [&](OpScope& s, const Values& in) {
                       return RandomTurn(random, s, in);
                     });
    written += loop.is_written_out();
    loop.Compare(
        {Ramp({2, 5}, 0.3f), Ramp({5}, 0.7f), Tensor::Scalar<float>(0.25f)});
    if (HasFailure()) return;
  }
  EXPECT_GT(written, 200);
}

}  // namespace
}  // namespace headrace
