// Calls that run side by side: which ones do, and that nobody notices.
#include "runtime/side_by_side.h"

#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/cancellation.h"
#include "base/timeline.h"
#include "eager/tape.h"
#include "op/op.h"
#include "op/passes/call_work.h"
#include "op/resource.h"
#include "runtime/test_plan.h"

namespace headrace {
namespace {

constexpr DType kNumbers = DType::kFloat;

// What all calls of TestSideWork saw and are to do.
struct SideWorkSeen {
  std::atomic<int> runs{0}, running{0}, most{0};
  std::atomic<CancellationToken*> token{nullptr};
} side_work;

class SideWorkKernel : public Kernel, public KnowsWork {
 public:
  explicit SideWorkKernel(const ResolvedOp& op)
      : does_(op.string_attr("does")) {}

  Status Run(KernelContext& c) override {
    ++side_work.runs;
    const int now = ++side_work.running;
    for (int most = side_work.most;
         most < now && !side_work.most.compare_exchange_weak(most, now);) {
    }
    Status s = Do();
    --side_work.running;
    std::memcpy(c.output(0).raw(), c.input(0).raw(), c.input(0).bytes());
    return s;
  }
  CallWork WorkOf(absl::Span<const Shape* const>,
                  absl::Span<const Shape* const>) const override {
    return {1e6, 1};
  }

 private:
  Status Do() const {
    using std::chrono::milliseconds;
    if (does_ == "meet") {
      for (int i = 0; i < 30'000 && side_work.most < 2; ++i) {
        std::this_thread::sleep_for(milliseconds(1));
      }
    } else if (does_ == "sleep") {
      std::this_thread::sleep_for(milliseconds(10));
    } else if (does_ == "cancel") {
      side_work.token.load()->Cancel();
      std::this_thread::sleep_for(milliseconds(10));
    } else if (absl::StartsWith(does_, "fail")) {
      return InvalidArgument(does_);
    }
    return OkStatus();
  }

  const std::string does_;
};
HR_OP(TestSideWork)
    .Input("x: float")
    .Output("y: float")
    .Attr("does: string = ''")
    .Doc("x, after what takes long.")
    .Shape(UnchangedShape)
    .Cpu(Bind<SideWorkKernel>);

Status HandOnWithEffect(KernelContext& c) {
  std::memcpy(c.output(0).raw(), c.input(0).raw(), c.input(0).bytes());
  return OkStatus();
}
HR_OP(TestSideEffect)
    .Input("x: float")
    .Output("y: float")
    .Doc("x, with an effect that nobody knows.")
    .Stateful()
    .Shape(UnchangedShape)
    .Cpu(Compute<HandOnWithEffect>);

// With two threads, whatever the machine has.
class SideBySide : public ::testing::Test {
 protected:
  SideBySide() {
    SetNumThreads(2);
    side_work.runs = side_work.running = side_work.most = 0;
    side_work.token = nullptr;
    services_.resources = &DefaultResources();
  }
  ~SideBySide() override { SetNumThreads(0); }

  std::unique_ptr<Executable> PlanOf(
      const Body& body, const ArgTypes& types,
      const std::map<int, HandlePart>& behind = {}) {
    auto e = Executable::Make(*Traced("beside", types, body, behind), nullptr);
    EXPECT_TRUE(e.ok()) << e.status();
    return *std::move(e);
  }
  int GroupsOf(const Body& body, const ArgTypes& types) {
    return PlanOf(body, types)->num_side_groups();
  }
  Status Run(Executable& e, std::vector<Tensor> in, std::vector<Tensor>* out) {
    return e.Run(services_, absl::MakeSpan(in), out);
  }
  // The plan with groups gives what the plan without gives, bit for bit; how
  // many groups there are.
  int CompareWithOneByOne(const Body& body, const std::vector<Tensor>& in) {
    SetNumThreads(1);
    auto alone = PlanOf(body, TypesOf(in));
    EXPECT_EQ(alone->num_side_groups(), 0);
    std::vector<Tensor> want, out;
    EXPECT_TRUE(Run(*alone, in, &want).ok());
    SetNumThreads(2);
    auto e = PlanOf(body, TypesOf(in));
    for (int threads : {2, 2, 2, 1, 4, 2}) {
      SetNumThreads(threads);
      Status s = Run(*e, in, &out);
      EXPECT_TRUE(s.ok()) << s;
      for (size_t i = 0; i < want.size() && i < out.size(); ++i) {
        EXPECT_EQ(std::memcmp(out[i].raw(), want[i].raw(), want[i].bytes()), 0)
            << "result " << i << " on " << threads << " threads\n"
            << e->DebugString();
      }
    }
    SetNumThreads(2);
    return e->num_side_groups();
  }

  RunServices services_;
};

const Shape kRows = {16, 256}, kWeights = {256, 256};

Value Layer(OpScope& s, const Value& x, const Value& w) {
  return s("Tanh", {s("MatMul", {x, w})});
}

TEST_F(SideBySide, ProductsOfOneInput) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    Values out;
    for (int i = 1; i <= 4; ++i) out.push_back(s("MatMul", {v[0], v[i]}));
    return out;
  };
  std::vector<Tensor> in = {Numbers(kRows)};
  for (int i = 0; i < 4; ++i) in.push_back(Numbers(kWeights, i + 3));
  EXPECT_EQ(CompareWithOneByOne(body, in), 1);
}

TEST_F(SideBySide, TowersAreStrandsFromBaseToTop) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    Value a = v[0], b = v[0];
    for (int i = 0; i < 3; ++i) {
      a = Layer(s, a, v[1]);
      b = Layer(s, b, v[2]);
    }
    return {a, b};
  };
  const std::vector<Tensor> in = {Numbers(kRows), Numbers(kWeights),
                                  Numbers(kWeights, 3)};
  EXPECT_EQ(CompareWithOneByOne(body, in), 1);
  const std::string plan = PlanOf(body, TypesOf(in))->DebugString();
  for (const char* strand : {"strand 0", "strand 1"}) {
    int steps = 0;
    for (StringView line : absl::StrSplit(plan, '\n')) {
      steps += absl::StrContains(line, strand);
    }
    EXPECT_EQ(steps, 3) << plan;
  }
}

TEST_F(SideBySide, StrandsRunAtTheSameTime) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    return {s("TestSideWork", {v[0]}, {{"does", "meet"}}),
            s("TestSideWork", {v[1]}, {{"does", "meet"}})};
  };
  auto e = PlanOf(body, {{kNumbers, {3}}, {kNumbers, {3}}});
  ASSERT_EQ(e->num_side_groups(), 1);
  std::vector<Tensor> out;
  ASSERT_TRUE(Run(*e, {Numbers({3}), Numbers({3}, 5)}, &out).ok());
  EXPECT_EQ(side_work.most, 2);
}

TEST_F(SideBySide, OneByOneWhileATimelineRecords) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    return {s("TestSideWork", {v[0]}, {{"does", "sleep"}}),
            s("TestSideWork", {v[1]}, {{"does", "sleep"}})};
  };
  auto e = PlanOf(body, {{kNumbers, {3}}, {kNumbers, {3}}});
  std::vector<Tensor> out;
  const timeline::OfThisThread watched;
  ASSERT_TRUE(Run(*e, {Numbers({3}), Numbers({3}, 5)}, &out).ok());
  EXPECT_EQ(side_work.most, 1);
  EXPECT_EQ(watched.events().size(), 2u);
}

TEST_F(SideBySide, WhatWaitsOrIsShortOrIsCutIsNoGroup) {
  auto chain = [](OpScope& s, const Values& v) -> Values {
    Value x = v[0];
    for (int i = 0; i < 4; ++i) x = Layer(s, x, v[1]);
    return {x};
  };
  EXPECT_EQ(GroupsOf(chain, {{kNumbers, kRows}, {kNumbers, kWeights}}), 0);
  auto two = [](OpScope& s, const Values& v) -> Values {
    return {s("MatMul", {v[0], v[1]}), s("MatMul", {v[0], v[2]})};
  };
  auto of = [](const Shape& a, const Shape& b) -> ArgTypes {
    return {{kNumbers, a}, {kNumbers, b}, {kNumbers, b}};
  };
  EXPECT_EQ(GroupsOf(two, of(kRows, kWeights)), 1);
  EXPECT_EQ(GroupsOf(two, of({8, 8}, {8, 8})), 0);
  // Cut over the threads by itself.
  EXPECT_EQ(GroupsOf(two, of({512, 512}, {512, 512})), 0);
  // Nobody knows what it takes.
  EXPECT_EQ(GroupsOf(two, of({-1, 256}, kWeights)), 0);
  SetNumThreads(1);
  EXPECT_EQ(GroupsOf(two, of(kRows, kWeights)), 0);
}

TEST_F(SideBySide, EffectsPartGroups) {
  auto body = [](int effect) {
    return [effect](OpScope& s, const Values& v) -> Values {
      Values out;
      for (int i = 0; i < 4; ++i) {
        if (i == effect) out.push_back(s("TestSideEffect", {v[0]}));
        out.push_back(s("TestSideWork", {v[i]}));
      }
      return out;
    };
  };
  const ArgTypes types(4, {kNumbers, {3}});
  EXPECT_EQ(GroupsOf(body(-1), types), 1);
  EXPECT_EQ(GroupsOf(body(2), types), 2);
  EXPECT_EQ(GroupsOf(body(3), types), 1);
}

// Reads may be part of a group, and stay on their side of a write.
TEST_F(SideBySide, VariablesAreReadBeforeAndAfterTheirWrite) {
  Value handle((*RunOp("VarHandleOp", {},
                       {{"dtype", kNumbers},
                        {"shape", kWeights},
                        {"shared_name", "side_by_side_weights"}}))[0]);
  OpScope now;
  auto set = [&] {
    now.All("AssignVariableOp", {handle, Value(Numbers(kWeights))});
    ASSERT_TRUE(now.ok()) << now.status();
  };
  auto body = [](OpScope& s, const Values& v) -> Values {
    auto read = [&] {
      return s("ReadVariableOp", {v[1]}, {{"dtype", kNumbers}});
    };
    Values out;
    for (int i = 0; i < 2; ++i) out.push_back(Layer(s, v[2 + i], read()));
    s.All("AssignVariableOp", {v[1], v[0]});
    for (int i = 0; i < 2; ++i) out.push_back(Layer(s, v[2 + i], read()));
    return out;
  };
  const std::vector<Tensor> in = {Numbers(kWeights, 5), handle.tensor(),
                                  Numbers(kRows), Numbers(kRows, 3)};
  const std::map<int, HandlePart> behind = {{1, {kNumbers, kWeights}}};
  SetNumThreads(1);
  auto alone = PlanOf(body, TypesOf(in), behind);
  SetNumThreads(2);
  auto e = PlanOf(body, TypesOf(in), behind);
  EXPECT_EQ(e->num_side_groups(), 2) << e->DebugString();
  std::vector<Tensor> want, out;
  for (int round = 0; round < 5; ++round) {
    set();
    ASSERT_TRUE(Run(*alone, in, &want).ok());
    set();
    ASSERT_TRUE(Run(*e, in, &out).ok());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(std::memcmp(out[i].raw(), want[i].raw(), want[i].bytes()), 0);
    }
  }
}

// The value that both read last could be written over by either.
TEST_F(SideBySide, WhatSeveralReadStaysToTheEnd) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    Value shared = s("MatMul", {v[0], v[1]});
    Values out;
    for (int i = 2; i <= 3; ++i) {
      Value own = s("MatMul", {v[0], v[i]});
      out.push_back(s("Sin", {s("Softmax", {s("Sub", {shared, own})})}));
      out.push_back(s("Reshape", {s("Cumsum", {shared, s.Int32(i - 2)}),
                                  s.Int32s({256, 16})}));
    }
    return out;
  };
  std::vector<Tensor> in = {Numbers(kRows)};
  for (int i = 0; i < 3; ++i) in.push_back(Numbers(kWeights, i + 3));
  EXPECT_GE(CompareWithOneByOne(body, in), 1);
}

TEST_F(SideBySide, TheFirstErrorInOrderIsReported) {
  auto body = [](bool early) {
    return [early](OpScope& s, const Values& v) -> Values {
      auto work = [&](const Value& x, const char* does) {
        return s("TestSideWork", {x}, {{"does", does}});
      };
      Value first, late;
      if (early) first = work(v[1], "fail at once");
      late = work(work(v[0], "sleep"), "fail late");
      if (!early) first = work(v[1], "fail at once");
      return {late, first};
    };
  };
  for (bool early : {true, false}) {
    auto e = PlanOf(body(early), {{kNumbers, {3}}, {kNumbers, {3}}});
    ASSERT_EQ(e->num_side_groups(), 1);
    for (int threads : {2, 1, 2, 2}) {
      SetNumThreads(threads);
      std::vector<Tensor> out;
      Status s = Run(*e, {Numbers({3}), Numbers({3})}, &out);
      EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_TRUE(
          absl::StartsWith(s.message(), early ? "fail at once" : "fail late"))
          << s;
      EXPECT_TRUE(absl::StrContains(s.message(), "[[{{node ")) << s;
      EXPECT_TRUE(out.empty());
    }
  }
}

TEST_F(SideBySide, StrandsStopWhenTheyAreTold) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    Values out;
    for (const Value& x : v) {
      Value y = s("TestSideWork", {x}, {{"does", "cancel"}});
      for (int i = 0; i < 5; ++i) {
        y = s("TestSideWork", {y}, {{"does", "sleep"}});
      }
      out.push_back(y);
    }
    return out;
  };
  auto e = PlanOf(body, {{kNumbers, {3}}, {kNumbers, {3}}});
  ASSERT_EQ(e->num_side_groups(), 1);
  CancellationToken token;
  side_work.token = &token;
  const StopScope scope(&token);
  std::vector<Tensor> out;
  Status s = Run(*e, {Numbers({3}), Numbers({3})}, &out);
  EXPECT_EQ(s.code(), absl::StatusCode::kCancelled) << s;
  EXPECT_LT(side_work.runs, 6);
}

// Plans within loops of the pool, several at once: all end, with the same bits.
TEST_F(SideBySide, WithinLoopsOfThePool) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    return {Layer(s, Layer(s, v[0], v[1]), v[1]),
            Layer(s, Layer(s, v[0], v[2]), v[2])};
  };
  const std::vector<Tensor> in = {Numbers(kRows), Numbers(kWeights),
                                  Numbers(kWeights, 3)};
  auto e = PlanOf(body, TypesOf(in));
  ASSERT_EQ(e->num_side_groups(), 1);
  std::vector<Tensor> want;
  ASSERT_TRUE(Run(*e, in, &want).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      ParallelFor(40, 1e5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::vector<Tensor> out;
          ASSERT_TRUE(Run(*e, in, &out).ok());
          for (size_t o = 0; o < want.size(); ++o) {
            ASSERT_EQ(std::memcmp(out[o].raw(), want[o].raw(), want[o].bytes()),
                      0);
          }
        }
      });
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(SideBySide, GradientsOfTowers) {
  auto body = [](OpScope& s, const Values& v) -> Values {
    Tape tape(/*persistent=*/false, /*watch_variables=*/false);
    for (const Value& x : v) tape.Watch(x);
    tape.Start();
    Value a = v[0], b = v[0];
    for (int i = 0; i < 2; ++i) {
      a = Layer(s, a, v[1]);
      b = Layer(s, b, v[2]);
    }
    Value y = s("Sub", {a, b});
    tape.Stop();
    auto grads = tape.Gradients({y}, v, {});
    EXPECT_TRUE(grads.ok()) << grads.status();
    Values out = {y};
    for (Gradient& g : *grads) out.push_back(Densify(s, g));
    return out;
  };
  const std::vector<Tensor> in = {Numbers(kRows), Numbers(kWeights),
                                  Numbers(kWeights, 3)};
  EXPECT_GE(CompareWithOneByOne(body, in), 1);
}

TEST_F(SideBySide, SmallConvolutions) {
  const std::vector<int64_t> ones(4, 1);
  auto body = [&](OpScope& s, const Values& v) -> Values {
    Values out;
    for (int i = 1; i <= 3; ++i) {
      out.push_back(s("Relu", {s("Conv2D", {v[0], v[i]},
                                 {{"strides", ones}, {"padding", "SAME"}})}));
    }
    return out;
  };
  // Too small to be cut.
  std::vector<Tensor> in = {Numbers({1, 8, 8, 32})};
  for (int i = 0; i < 3; ++i) in.push_back(Numbers({3, 3, 32, 32}, i + 3));
  EXPECT_EQ(CompareWithOneByOne(body, in), 1);
}

TEST_F(SideBySide, InTheTurnsOfALoop) {
  const ArgTypes types = {{DType::kInt32, {}},
                          {kNumbers, kRows},
                          {kNumbers, kRows},
                          {kNumbers, kWeights}};
  FunctionPtr cond =
      Traced("cond", types, [](OpScope& s, const Values& v) -> Values {
        return {s("Less", {v[0], s.Int32(20)})};
      });
  FunctionPtr turn =
      Traced("turn", types, [](OpScope& s, const Values& v) -> Values {
        return {s("AddV2", {v[0], s.Int32(1)}), Layer(s, v[2], v[3]),
                Layer(s, v[1], v[3]), v[3]};
      });
  auto body = [&](OpScope& s, const Values& v) -> Values {
    ValueList out = s.All("StatelessWhile", {s.Int32(0), v[0], v[1], v[2]},
                          {{"cond", FuncRef{cond->name, nullptr}},
                           {"body", FuncRef{turn->name, nullptr}}});
    return {out[1], out[2]};
  };
  CompareWithOneByOne(
      body, {Numbers(kRows), Numbers(kRows, 3), Numbers(kWeights, 5)});
}

// Random programs of products, chains, reductions and views.
class RandomProgram {
 public:
  explicit RandomProgram(int seed) : random_(seed) {}

  Values Write(OpScope& s, const Values& v) {
    Values made = {v[0], v[1]};
    Values results;
    for (int i = 0; i < 24; ++i) {
      made.push_back(Step(s, v, made));
      if (Next(4) == 0) results.push_back(made.back());
    }
    results.push_back(made.back());
    return results;
  }

 private:
  int Next(int n) { return static_cast<int>(random_() % n); }
  const Value& Any(const Values& made) {
    // Often one of the last, else all is one wide tree.
    const int n = static_cast<int>(made.size());
    return made[Next(2) ? n - 1 - Next(std::min(n, 4)) : Next(n)];
  }
  Value Step(OpScope& s, const Values& v, const Values& made) {
    const Value x = Any(made), y = Any(made);
    switch (Next(8)) {
      case 0:
        return s("Sub", {x, y});
      case 1:
        return s("Softmax", {x});
      case 2:
        return s("Reshape",
                 {s("Transpose", {x, s.Int32s({1, 0})}), s.Int32s({16, 256})});
      case 3:
        return s("Mul", {x, s("Mean", {y, s.Int32(1)}, {{"keep_dims", true}})});
      default:
        return Layer(s, x, v[2 + Next(2)]);
    }
  }

  std::mt19937 random_;
};

TEST_F(SideBySide, RandomProgramsGiveTheSameBits) {
  const std::vector<Tensor> in = {Numbers(kRows), Numbers(kRows, 3),
                                  Numbers(kWeights, 5), Numbers(kWeights, 11)};
  int groups = 0;
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    groups += CompareWithOneByOne(
        [seed](OpScope& s, const Values& v) {
          return RandomProgram(seed).Write(s, v);
        },
        in);
  }
  EXPECT_GT(groups, 40);
}

}  // namespace
}  // namespace headrace
