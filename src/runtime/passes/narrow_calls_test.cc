// What a branch or a loop makes that nobody reads is not run: here it would be
// a division by zero.
#include "graph/test_function.h"
#include "runtime/executable.h"

namespace headrace {
namespace {

ArgTypes Ints(int count) { return ArgTypes(count, {DType::kInt32, Shape()}); }

Value ByZero(OpScope& s, const Value& x) {
  return s("FloorDiv", {x, s("Sub", {x, x})});
}

// Of x: x + 1 and a division by zero.
FunctionPtr TwoResults() {
  return Traced("two", Ints(1), [](OpScope& s, const Values& in) -> Values {
    return {s("AddV2", {in[0], s.Int32(1)}), ByZero(s, in[0])};
  });
}

ValueList IfOf(OpScope& s, const Value& x, const FunctionPtr& branch) {
  return s.All("StatelessIf", {s("Greater", {x, s.Int32(0)}), x},
               {{"then_branch", FuncRef{branch->name, nullptr}},
                {"else_branch", FuncRef{branch->name, nullptr}},
                {"Tout", branch->result_types()}});
}

// The first result of the function of one integer.
StatusOr<int32_t> RunOn(int32_t x, const Body& body) {
  const FunctionPtr f = Traced("f", Ints(1), body);
  HR_ASSIGN_OR_RETURN(std::unique_ptr<Executable> e,
                      Executable::Make(*f, nullptr));
  RunServices services;
  std::vector<Tensor> in = {Tensor::Scalar<int32_t>(x)}, out;
  HR_RETURN_IF_ERROR(e->Run(services, absl::MakeSpan(in), &out));
  return out[0].data<int32_t>()[0];
}

TEST(NarrowCalls, BranchesMakeWhatIsRead) {
  const FunctionPtr branch = TwoResults();
  const auto result = [&](int which) -> Body {
    return [=](OpScope& s, const Values& in) -> Values {
      return {IfOf(s, in[0], branch)[which]};
    };
  };
  for (int run = 0; run < 2; ++run) EXPECT_EQ(*RunOn(4, result(0)), 5);
  EXPECT_FALSE(RunOn(4, result(1)).ok());
  MutexLock lock(branch->narrowed_mutex);
  EXPECT_EQ(branch->narrowed.size(), 2u);  // each made once
}

TEST(NarrowCalls, WithinBranchesToo) {
  const FunctionPtr branch = TwoResults();
  const FunctionPtr outer =
      Traced("outer", Ints(1), [&](OpScope& s, const Values& in) -> Values {
        const ValueList found = IfOf(s, in[0], branch);
        return {found[0], found[1]};
      });
  EXPECT_EQ(*RunOn(4,
                   [&](OpScope& s, const Values& in) -> Values {
                     return {IfOf(s, in[0], outer)[0]};
                   }),
            5);
}

TEST(NarrowCalls, WhatSomebodyWaitsForIsWhole) {
  const FunctionPtr branch = TwoResults();
  GraphBuilder b(std::make_shared<Graph>(), GraphBuilder::Kind::kPlain);
  EmitterScope emits(&b);
  OpScope s;
  const ValueList found = IfOf(s, s.Int32(4), branch);
  b.SetControlInputs({found[0].node()});
  const Value after = s("Identity", {s.Int32(1)});
  ASSERT_TRUE(s.ok()) << s.status();
  auto e = Executable::Make(*b.graph(), {}, {EdgeOf(found[0]), EdgeOf(after)},
                            {}, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  RunServices services;
  std::vector<Tensor> out;
  EXPECT_FALSE((*e)->Run(services, {}, &out).ok());
}

// A loop of three turns over (i, x, y): x grows, y is divided by zero, and the
// condition looks at `i` and, with `test_y`, at y as well.
Body LoopOf(int which, bool test_y) {
  return [=](OpScope& s, const Values& in) -> Values {
    const FunctionPtr cond =
        Traced("cond", Ints(3), [&](OpScope& s, const Values& v) -> Values {
          const Value more = s("Less", {v[0], s.Int32(3)});
          if (!test_y) return {more};
          return {s("LogicalAnd", {more, s("Less", {v[2], s.Int32(9)})})};
        });
    const FunctionPtr body =
        Traced("body", Ints(3), [](OpScope& s, const Values& v) -> Values {
          return {s("AddV2", {v[0], s.Int32(1)}), s("AddV2", {v[1], v[0]}),
                  ByZero(s, v[2])};
        });
    return {s.All("StatelessWhile", {s.Int32(0), in[0], in[0]},
                  {{"cond", FuncRef{cond->name, nullptr}},
                   {"body", FuncRef{body->name, nullptr}}})[which]};
  };
}

TEST(NarrowCalls, LoopsCarryWhatIsRead) {
  EXPECT_EQ(*RunOn(4, LoopOf(0, false)), 3);
  EXPECT_EQ(*RunOn(4, LoopOf(1, false)), 7);  // 4 + 0 + 1 + 2
  EXPECT_FALSE(RunOn(4, LoopOf(2, false)).ok());
  EXPECT_FALSE(RunOn(4, LoopOf(1, true)).ok());
}

}  // namespace
}  // namespace headrace
