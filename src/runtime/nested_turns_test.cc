// Turns with branches and loops in them: random programs, bound, against the
// same programs call by call and by the turns of a plan, to the last bit and
// the last word of an error.
#include <time.h>

#include <random>

#include "base/cancellation.h"
#include "runtime/test_turns.h"

namespace headrace {
namespace {

// The variables of all programs: a counter, a number, three and one, a list of
// threes, some of which were never set, one that grows and shrinks, and one of
// threes that stays.
enum { kCount, kNumber, kThree, kOne, kList, kStack, kGiven, kNumVariables };
constexpr int kListSize = 5;

std::vector<Tensor> FirstState(int seed) {
  const AttrMap floats = {{"element_dtype", DType::kFloat}};
  const auto made = [](StringView op, const std::vector<Tensor>& in,
                       const AttrMap& attrs) {
    return (*RunOp(op, in, attrs))[0];
  };
  const Tensor three =
      Tensor::Vector<float>({1, -0.5f, static_cast<float>(seed % 5)});
  const Tensor any = Tensor::Scalar<int32_t>(-1);
  Tensor list = made("TensorListReserve",
                     {any, Tensor::Scalar<int32_t>(kListSize)}, floats);
  list = made("TensorListSetItem",
              {list, Tensor::Scalar<int32_t>(seed % kListSize), three}, floats);
  Tensor stack = made("EmptyTensorList", {any, any}, floats);
  stack = made("TensorListPushBack", {stack, Tensor::Scalar<float>(2)}, floats);
  const Tensor rows =
      *Tensor::Vector<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5})
           .WithShape({kListSize, 3})
           .Clone();
  // The same list twice, or one that is rows.
  const Tensor given =
      seed % 2 ? list : made("TensorListFromTensor", {rows, any}, floats);
  return {Tensor::Scalar<int32_t>(0),
          Tensor::Scalar<int32_t>(seed % 7),
          three,
          Tensor::Scalar<float>(0.25f),
          seed % 3 ? list : given,
          stack,
          given};
}

FunctionPtr TracedWays(StringView name, const Body& body) {
  return Traced(name, TypesOf(FirstState(0)), body,
                {{kList, {DType::kFloat, {3}}},
                 {kStack, {DType::kFloat, {}}},
                 {kGiven, {DType::kFloat, {3}}}});
}

// How a program is made: recorded, with functions for bodies, or run at once.
class Writer {
 public:
  explicit Writer(bool at_once) : at_once_(at_once) {}

  Values If(OpScope& s, const Value& truth, const Values& in, const Body& yes,
            const Body& no) {
    if (at_once_) {
      if (!s.ok()) return in;
      return truth.tensor().scalar<bool>() ? yes(s, in) : no(s, in);
    }
    return Call(s, "StatelessIf", truth, in,
                {{"then_branch", Ref(yes)}, {"else_branch", Ref(no)}});
  }
  Values Case(OpScope& s, const Value& which, const Values& in,
              const std::vector<Body>& ways) {
    if (at_once_) {
      if (!s.ok()) return in;
      const int i = which.tensor().scalar<int32_t>();
      return i < 0 || i >= static_cast<int>(ways.size()) ? ways.back()(s, in)
                                                         : ways[i](s, in);
    }
    std::vector<FuncRef> refs;
    for (const Body& way : ways) refs.push_back(Ref(way));
    return Call(s, "StatelessCase", which, in, {{"branches", refs}});
  }
  Values While(OpScope& s, const Values& in, const Body& cond,
               const Body& body) {
    if (!at_once_) {
      ValueList out = s.All("StatelessWhile", in,
                            {{"cond", Ref(cond)}, {"body", Ref(body)}});
      return {out.begin(), out.end()};
    }
    Values state = in;
    while (s.ok() && cond(s, state)[0].tensor().scalar<bool>() && s.ok()) {
      state = body(s, state);
    }
    return state;
  }

 private:
  FuncRef Ref(const Body& body) {
    functions_.push_back(TracedWays("way", body));
    return {functions_.back()->name, nullptr};
  }
  Values Call(OpScope& s, const char* op, const Value& which, const Values& in,
              AttrMap attrs) {
    Values inputs = {which};
    inputs.insert(inputs.end(), in.begin(), in.end());
    std::vector<DType> types;
    for (const Value& v : in) types.push_back(v.dtype());
    attrs.Set("Tout", types);
    ValueList out = s.All(op, inputs, attrs);
    return {out.begin(), out.end()};
  }
  const bool at_once_;
  std::vector<FunctionPtr> functions_;
};

// A statement on the lists. `fails`: of elements that may not be there.
void ListStatement(OpScope& s, Values& v, int kind, bool fails) {
  const AttrMap floats = {{"element_dtype", DType::kFloat}};
  Value &number = v[kNumber], &three = v[kThree], &one = v[kOne];
  Value &list = v[kList], &stack = v[kStack];
  const Value index =
      fails ? number : s("FloorMod", {number, s.Int32(kListSize)});
  const auto pop = [&] {
    ValueList popped =
        s.All("TensorListPopBack", {stack, s.Int32s({})}, floats);
    if (!s.ok()) return;
    stack = popped[0];
    one = s("Sub", {one, popped[1]});
  };
  if (kind == 0) list = s("TensorListSetItem", {list, index, three});
  if (kind == 1 || kind == 2) {
    three = s("Maximum",
              {three, s("TensorListGetItem",
                        {kind == 1 ? list : v[kGiven], index, s.Int32s({3})},
                        floats)});
  }
  if (kind == 3) stack = s("TensorListPushBack", {stack, one});
  if (kind == 4) {
    if (!fails) stack = s("TensorListPushBack", {stack, s("Neg", {one})});
    pop();
  }
  if (kind == 5) {
    number = s("AddV2", {number, s("TensorListLength", {stack})});
  }
  if (kind == 6) {
    stack = s("TensorListPushBack", {stack, one});
    stack = s("TensorListSetItem", {stack, s.Int32(0), s("Square", {one})});
  }
}

// A program of some statements, which the seed chooses; the same for the same
// seed. `fails`: divisions by what may be 0.
Values Statements(Writer& w, OpScope& s, Values v, uint32_t seed, int depth,
                  bool fails) {
  std::mt19937 random(seed);
  auto pick = [&](int n) { return static_cast<int>(random() % n); };
  auto inner = [&](uint32_t other) {
    return [&w, other, depth, fails](OpScope& s, const Values& in) {
      return Statements(w, s, in, other, depth - 1, fails);
    };
  };
  const int n = 1 + pick(4);
  for (int k = 0; k < n; ++k) {
    const int kind = pick(depth > 0 ? 21 : 16) - 7;
    const Value two = s.Int32(2 + pick(3));
    Value &number = v[kNumber], &three = v[kThree], &one = v[kOne];
    const uint32_t a = random(), b = random(), c = random();
    if (kind < 0) ListStatement(s, v, kind + 7, fails);
    if (kind == 0) three = s("AddV2", {s("Mul", {three, one}), three});
    if (kind == 1) one = s("Tanh", {s("Sum", {three, s.Int32s({0})})});
    if (kind == 2) number = s("AddV2", {number, two});
    if (kind == 3) number = s("FloorMod", {number, two});
    if (kind == 4) {
      three = s("SelectV2",
                {s("Greater", {number, two}), s("Neg", {three}), three});
    }
    if (kind == 5)
      one = s("GatherV2",
              {three, s("FloorMod", {number, s.Int32(3)}), s.Int32(0)});
    if (kind == 6)
      three = s("Reshape",
                {s("Mul", {s("Reshape", {three, s.Int32s({3, 1})}), one}),
                 s.Int32s({3})});
    if (kind == 7 && fails) number = s("FloorDiv", {s.Int32(100), number});
    if (kind == 8) three = s("Minimum", {three, s("Square", {three})});
    if (kind == 9 || kind == 10) {
      v = w.If(s,
               s("Less",
                 {s("FloorMod", {number, s.Int32(3)}), s.Int32(1 + pick(2))}),
               v, inner(a), inner(b));
    }
    if (kind == 11) {
      v = w.Case(s, s("Sub", {number, two}), v, {inner(a), inner(b), inner(c)});
    }
    if (kind == 12) {
      // One way hands all through, the other makes one value for two.
      v = w.If(
          s, s("Greater", {v[kNumber], two}), v,
          [](OpScope&, const Values& in) { return in; },
          [](OpScope& s, const Values& in) {
            const Value n = s("Neg", {in[kNumber]});
            Values out = in;
            out[kCount] = out[kNumber] = n;
            return out;
          });
    }
    if (kind == 13) {
      const Value limit = s("FloorMod", {v[kNumber], s.Int32(4)});
      Values start = v;
      start[kCount] = s("Neg", {s("Maximum", {limit, s.Int32(0)})});
      const auto body = inner(a);
      Values out = w.While(
          s, start,
          [](OpScope& s, const Values& in) {
            return Values{s("Less", {in[kCount], s.Int32(0)})};
          },
          [&](OpScope& s, const Values& in) {
            Values next = body(s, in);
            next[kCount] = s("AddV2", {in[kCount], s.Int32(1)});
            return next;
          });
      for (int i = kNumber; i < kNumVariables; ++i) v[i] = out[i];
    }
  }
  return v;
}

Values Turn(Writer& w, OpScope& s, const Values& in, uint32_t seed,
            bool fails) {
  Values next = Statements(w, s, in, seed, 3, fails);
  next[kCount] = s("AddV2", {in[kCount], s.Int32(1)});
  return next;
}
Values GoesOn(OpScope& s, const Values& in) {
  return {s("Less", {in[kCount], s.Int32(6)})};
}

// Returns whether the turns were bound.
bool CompareProgram(uint32_t seed, bool fails) {
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const std::vector<Tensor> state = FirstState(static_cast<int>(seed));
  // Lists as they are before anything runs.
  const std::vector<Tensor> untouched = FirstState(static_cast<int>(seed));
  Writer recorded(/*at_once=*/false), at_once(/*at_once=*/true);
  TurnFunctions f;
  f.cond = TracedWays("cond", GoesOn);
  f.body = TracedWays("body", [&](OpScope& s, const Values& in) {
    return Turn(recorded, s, in, seed, fails);
  });
  const std::shared_ptr<const LoopPlan> plan = PlanOf(f, state);
  std::vector<Tensor> want = state;
  const Status wanted = RunByPlan(f, &want);
  for (int run = 0; run < 2; ++run) {
    std::vector<Tensor> got = state;
    RunServices services;
    const Status s = plan->Run(services, &got);
    EXPECT_EQ(s, wanted);
    if (s.ok() && wanted.ok()) ExpectSame(got, want);
  }
  ExpectSame(state, untouched);
  OpScope s;
  const Values direct =
      at_once.While(s, {state.begin(), state.end()}, GoesOn,
                    [&](OpScope& s, const Values& in) {
                      return s.ok() ? Turn(at_once, s, in, seed, fails) : in;
                    });
  EXPECT_EQ(s.ok(), wanted.ok()) << s.status() << wanted;
  if (s.ok() && wanted.ok()) {
    std::vector<Tensor> got;
    for (const Value& v : direct) got.push_back(v.tensor());
    ExpectSame(got, want);
  }
  return plan->bound();
}

TEST(NestedTurns, RandomProgramsHaveTheBitsOfTheirCalls) {
  int bound = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    bound += CompareProgram(seed, /*fails=*/false);
    if (HasFailure()) return;
  }
  EXPECT_EQ(bound, 300);
}

TEST(NestedTurns, RandomProgramsFailAsTheirPlansDo) {
  int bound = 0;
  for (uint32_t seed = 1000; seed < 1200; ++seed) {
    bound += CompareProgram(seed, /*fails=*/true);
    if (HasFailure()) return;
  }
  EXPECT_EQ(bound, 200);
}

// What is not made is no error, and what is made first is reported first.
TEST(NestedTurns, WaysThatAreNotTakenDoNotFail) {
  Writer w(/*at_once=*/false);
  const std::vector<Tensor> state = FirstState(3);
  for (int limit : {0, 5}) {
    TurnFunctions f;
    f.cond = TracedWays("cond", GoesOn);
    f.body = TracedWays("body", [&](OpScope& s, const Values& in) {
      Values out = w.If(
          s, s("Less", {in[kCount], s.Int32(limit)}), in,
          [](OpScope& s, const Values& in) {
            Values out = in;
            out[kNumber] = s("FloorDiv",
                             {in[kNumber], s("Sub", {in[kCount], s.Int32(3)})});
            return out;
          },
          [](OpScope&, const Values& in) { return in; });
      out[kCount] = s("AddV2", {in[kCount], s.Int32(1)});
      return out;
    });
    const auto plan = PlanOf(f, state);
    ASSERT_TRUE(plan->bound());
    std::vector<Tensor> got = state, want = state;
    RunServices services;
    const Status s = plan->Run(services, &got);
    EXPECT_EQ(s, RunByPlan(f, &want));
    EXPECT_EQ(s.ok(), limit == 0) << s;
  }
}

double ThreadMs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

// The inner loop never ends; behind a division by 0 nothing begins.
TEST(NestedTurns, EndlessInnerLoopsStopSoon) {
  Writer w(/*at_once=*/false);
  std::vector<Tensor> state = FirstState(3);
  for (bool divides : {false, true}) {
    TurnFunctions f;
    f.cond = TracedWays("cond", GoesOn);
    f.body = TracedWays("body", [&](OpScope& s, const Values& in) {
      Values first = in;
      if (divides) {
        first[kNumber] = s("FloorDiv", {in[kNumber], in[kCount]});
      }
      Values out = w.While(
          s, first,
          [](OpScope& s, const Values& in) {
            // True of all that the division leaves.
            return Values{s("GreaterEqual", {s("Square", {in[kOne]}),
                                             s.Scalar(DType::kFloat, 0)})};
          },
          [](OpScope& s, const Values& in) {
            Values out = in;
            out[kThree] = s("Tanh", {in[kThree]});
            return out;
          });
      return out;
    });
    const auto run = [&](int milliseconds) {
      const Deadline deadline(milliseconds);
      return RunOp("StatelessWhile", state,
                   {{"cond", FuncRef{f.cond->name, nullptr}},
                    {"body", FuncRef{f.body->name, nullptr}}});
    };
    run(200).status().IgnoreError();  // makes the plan, slowly under sanitizers
    const double start = ThreadMs();
    const auto s = run(20);
    EXPECT_EQ(s.status().code(), divides ? absl::StatusCode::kInvalidArgument
                                         : absl::StatusCode::kDeadlineExceeded)
        << s.status();
    EXPECT_LT(ThreadMs() - start, 35);
    MutexLock lock(f.body->derived_mutex);
    EXPECT_TRUE(f.body->derived.loops.at(0).plan->bound());
  }
}

}  // namespace
}  // namespace headrace
