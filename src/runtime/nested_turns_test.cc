// Turns with branches and loops in them: random programs, bound, against the
// same programs call by call and by the turns of a plan, to the last bit and
// the last word of an error.
#include <time.h>

#include <cstring>
#include <random>

#include "base/cancellation.h"
#include "eager/eager_emitter.h"
#include "graph/test_function.h"
#include "runtime/loop_plan.h"

namespace headrace {
namespace {

// The variables of all programs: a counter, a number, three and one.
enum { kCount, kNumber, kThree, kOne, kNumVariables };

std::vector<Tensor> FirstState(int seed) {
  return {Tensor::Scalar<int32_t>(0), Tensor::Scalar<int32_t>(seed % 7),
          Tensor::Vector<float>({1, -0.5f, static_cast<float>(seed % 5)}),
          Tensor::Scalar<float>(0.25f)};
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
    std::vector<Tensor> like = FirstState(0);
    functions_.push_back(Traced("way", TypesOf(like), body));
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
    const int kind = pick(depth > 0 ? 14 : 9);
    const Value two = s.Int32(2 + pick(3));
    Value &number = v[kNumber], &three = v[kThree], &one = v[kOne];
    const uint32_t a = random(), b = random(), c = random();
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
            return Values{n, n, in[kThree], in[kOne]};
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
      v[kNumber] = out[kNumber];
      v[kThree] = out[kThree];
      v[kOne] = out[kOne];
    }
  }
  return v;
}

struct Functions {
  FunctionPtr cond, body;
};

Values Turn(Writer& w, OpScope& s, const Values& in, uint32_t seed,
            bool fails) {
  Values next = Statements(w, s, in, seed, 3, fails);
  next[kCount] = s("AddV2", {in[kCount], s.Int32(1)});
  return next;
}
Values GoesOn(OpScope& s, const Values& in) {
  return {s("Less", {in[kCount], s.Int32(6)})};
}

// The plan of the loop of these functions, made by running it.
std::shared_ptr<const LoopPlan> PlanOf(const Functions& f,
                                       const std::vector<Tensor>& state) {
  RunOp("StatelessWhile", state,
        {{"cond", FuncRef{f.cond->name, nullptr}},
         {"body", FuncRef{f.body->name, nullptr}}})
      .IgnoreError();
  MutexLock lock(f.body->derived_mutex);
  EXPECT_EQ(f.body->derived.loops.size(), 1u);
  return f.body->derived.loops.at(0).plan;
}

StatusOr<Program> ProgramOfTurn(const Functions& f) {
  Program parts[2];
  for (int i : {0, 1}) {
    const Function& g = i == 0 ? *f.cond : *f.body;
    std::vector<Edge> feeds;
    for (Node* n : g.args) feeds.push_back({n, 0});
    HR_ASSIGN_OR_RETURN(parts[i],
                        MakeProgram(*g.body, feeds, g.results, {}, nullptr));
  }
  AppendCondition(parts[0], &parts[1]);
  HR_RETURN_IF_ERROR(Optimise(parts[1]));
  return parts[1];
}

// By a plan's turns, which find branches and loops by name.
Status RunByPlan(const Functions& f, std::vector<Tensor>* state) {
  HR_ASSIGN_OR_RETURN(Program turn, ProgramOfTurn(f));
  HR_ASSIGN_OR_RETURN(auto plan, TurnPlan::Make(std::move(turn)));
  RunServices services;
  HR_ASSIGN_OR_RETURN(auto turns, Turns::Begin(*plan, services));
  HR_RETURN_IF_ERROR(turns->Set(absl::MakeSpan(*state)));
  for (bool more = true; more;) {
    HR_RETURN_IF_ERROR(turns->Run());
    more = turns->fetch(plan->num_variables()).scalar<bool>();
    HR_RETURN_IF_ERROR(turns->Advance(more));
  }
  turns->Take(state);
  return OkStatus();
}

void ExpectSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape());
    if (a[i].dtype() != DType::kFloat) {
      EXPECT_EQ(a[i].scalar<int32_t>(), b[i].scalar<int32_t>());
      continue;
    }
    for (int64_t k = 0; k < a[i].num_elements(); ++k) {
      const float x = a[i].data<float>()[k], y = b[i].data<float>()[k];
      EXPECT_TRUE(std::memcmp(&x, &y, 4) == 0 || (x != x && y != y))
          << "variable " << i << ": " << x << ", " << y;
    }
  }
}

// Returns whether the turns were bound.
bool CompareProgram(uint32_t seed, bool fails) {
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const std::vector<Tensor> state = FirstState(static_cast<int>(seed));
  Writer recorded(/*at_once=*/false), at_once(/*at_once=*/true);
  Functions f;
  f.cond = Traced("cond", TypesOf(state), GoesOn);
  f.body = Traced("body", TypesOf(state), [&](OpScope& s, const Values& in) {
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
  for (uint32_t seed = 0; seed < 150; ++seed) {
    bound += CompareProgram(seed, /*fails=*/false);
    if (HasFailure()) return;
  }
  EXPECT_EQ(bound, 150);
}

TEST(NestedTurns, RandomProgramsFailAsTheirPlansDo) {
  int bound = 0;
  for (uint32_t seed = 1000; seed < 1100; ++seed) {
    bound += CompareProgram(seed, /*fails=*/true);
    if (HasFailure()) return;
  }
  EXPECT_EQ(bound, 100);
}

// What is not made is no error, and what is made first is reported first.
TEST(NestedTurns, WaysThatAreNotTakenDoNotFail) {
  Writer w(/*at_once=*/false);
  const std::vector<Tensor> state = FirstState(3);
  for (int limit : {0, 5}) {
    Functions f;
    f.cond = Traced("cond", TypesOf(state), GoesOn);
    f.body = Traced("body", TypesOf(state), [&](OpScope& s, const Values& in) {
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
    Functions f;
    f.cond = Traced("cond", TypesOf(state), GoesOn);
    f.body = Traced("body", TypesOf(state), [&](OpScope& s, const Values& in) {
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
