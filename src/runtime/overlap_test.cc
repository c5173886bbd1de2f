// Plans go on while steps of them wait.
#include "runtime/overlap.h"

#include <chrono>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "base/cancellation.h"
#include "base/mutex.h"
#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/op.h"
#include "op/waiting.h"
#include "runtime/executable.h"
#include "runtime/test_plan.h"
#include "runtime/waiting_steps.h"

namespace headrace {
namespace {

// What the steps of a test share.
struct Shared {
  Mutex mutex;
  CondVar changed;
  int arrived ABSL_GUARDED_BY(mutex) = 0;
  std::vector<int64_t> notes ABSL_GUARDED_BY(mutex);

  void Clear() {
    MutexLock lock(mutex);
    arrived = 0;
    notes.clear();
  }
  std::vector<int64_t> Notes() {
    MutexLock lock(mutex);
    return notes;
  }
};
Shared& TheShared() {
  static Shared* const shared = new Shared;
  return *shared;
}

// Waits until so many calls have come here.
Status Meet(KernelContext& c) {
  Shared& shared = TheShared();
  {
    MutexLock lock(shared.mutex);
    ++shared.arrived;
    shared.changed.NotifyAll();
    while (shared.arrived < c.op().int_attr("n")) {
      shared.changed.WaitFor(shared.mutex, std::chrono::milliseconds(5));
      MutexUnlock open(shared.mutex);
      HR_RETURN_IF_ERROR(CheckStop());
    }
  }
  c.set_output(0, c.input(0));
  return OkStatus();
}
HR_OP(TestMeet)
    .Traits({kMayWait})
    .Input("x: float")
    .Output("y: float")
    .Attr("n: int")
    .Doc("Waits for other calls.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<Meet>);

// Hands x on after a while, in memory of its own.
Status Pause(KernelContext& c) {
  std::this_thread::sleep_for(std::chrono::microseconds(c.op().int_attr("us")));
  HR_ASSIGN_OR_RETURN(Tensor copy, c.input(0).Clone());
  c.set_output(0, std::move(copy));
  return OkStatus();
}
HR_OP(TestPause)
    .Traits({kMayWait})
    .Input("x: float")
    .Output("y: float")
    .Attr("us: int")
    .Doc("Takes its time.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<Pause>);

Status Fails(KernelContext& c) {
  std::this_thread::sleep_for(std::chrono::microseconds(c.op().int_attr("us")));
  return InvalidArgument("failed after ", c.op().int_attr("us"));
}
HR_OP(TestFails)
    .Traits({kMayWait})
    .Input("x: float")
    .Output("y: float")
    .Attr("us: int")
    .Doc("Fails after its time.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<Fails>);

Status Note(KernelContext& c) {
  MutexLock lock(TheShared().mutex);
  TheShared().notes.push_back(c.op().int_attr("what"));
  return OkStatus();
}
HR_OP(TestNote)
    .Attr("what: int")
    .Doc("An effect.")
    .Stateful()
    .Shape(NoOutputs)
    .Cpu(Compute<Note>);

// A graph as sessions have them.
struct Plain {
  Plain() : builder(std::make_shared<Graph>(), GraphBuilder::Kind::kPlain) {
    TheShared().Clear();
  }
  Value Feed(Shape shape) {
    Value v = *builder.AddPlaceholder("x", DType::kFloat, shape, nullptr);
    feeds.push_back({v.node(), v.index()});
    return v;
  }
  // Calls `body` with this as the emitter.
  template <typename F>
  void Build(F&& body) {
    EmitterScope scope(&builder);
    OpScope s;
    body(s);
    ASSERT_TRUE(s.ok()) << s.status();
  }
  std::unique_ptr<Executable> Plan(const Values& results,
                                   std::vector<Node*> targets = {}) {
    std::vector<Edge> fetches;
    for (const Value& v : results) fetches.push_back({v.node(), v.index()});
    auto made =
        Executable::Make(*builder.graph(), feeds, fetches, targets, nullptr);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  Node* Last() {
    Graph& g = *builder.graph();
    return g.node(g.num_nodes() - 1);
  }
  GraphBuilder builder;
  std::vector<Edge> feeds;
};

Status RunPlan(Executable& e, std::vector<Tensor> in,
               std::vector<Tensor>* out) {
  RunServices services;
  return e.Run(services, absl::MakeSpan(in), out);
}

TEST(Overlap, StepsThatWaitForEachOtherMeet) {
  Plain p;
  Value x = p.Feed({2}), y;
  p.Build([&](OpScope& s) {
    Value a = s("TestMeet", {x}, {{"n", int64_t{3}}});
    Value b = s("TestMeet", {s("Neg", {x})}, {{"n", int64_t{3}}});
    Value c = s("TestMeet", {s("Square", {x})}, {{"n", int64_t{3}}});
    y = s("AddV2", {s("Mul", {a, b}), c});
  });
  auto e = p.Plan({y});
  EXPECT_EQ(e->num_overlapping(), 3);
  for (int i = 0; i < 5; ++i) {
    TheShared().Clear();
    std::vector<Tensor> out;
    ASSERT_TRUE(RunPlan(*e, {Tensor::Vector<float>({3, 4})}, &out).ok());
    EXPECT_EQ(out[0].data<float>()[0], 0);
    EXPECT_EQ(out[0].data<float>()[1], 0);
  }
}

TEST(Overlap, AStepThatWaitsAloneTakesNoThread) {
  Plain p;
  Value x = p.Feed({2}), y;
  p.Build([&](OpScope& s) {
    y = s("Neg", {s("TestPause", {s("Neg", {x})}, {{"us", int64_t{1}}})});
  });
  EXPECT_EQ(p.Plan({y})->num_overlapping(), 0);
}

// As gradients are sent while others are computed: the calls that wait begin
// when what they take is there, though they were written last.
TEST(Overlap, CallsThatWaitBeginEarly) {
  Plain p;
  Value x = p.Feed({200, 200}), left = x;
  Values sums;
  p.Build([&](OpScope& s) {
    Values gradients;
    for (int i = 0; i < 4; ++i) {
      left = s("MatMul", {left, left});  // a product: worth a thread
      gradients.push_back(s("Neg", {left}));
    }
    for (const Value& g : {gradients[3], gradients[1], gradients[0]}) {
      sums.push_back(s("TestPause", {s("Exp", {g})}, {{"us", int64_t{1}}}));
    }
    sums.push_back(left);
  });
  std::vector<Edge> fetches;
  for (const Value& v : sums) fetches.push_back({v.node(), v.index()});
  StatusOr<Program> made =
      MakeProgram(*p.builder.graph(), p.feeds, fetches, {}, nullptr, nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  for (Call& call : made->calls) ASSERT_TRUE(BindCall(call).ok());
  ASSERT_TRUE(FindOverlap(*made).any());
  std::vector<std::string> order;
  for (const Call& call : made->calls) {
    const std::string& op = call.op->name();
    if (op == "MatMul" || op == "TestPause") order.push_back(op);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"MatMul", "TestPause", "MatMul",
                                             "TestPause", "MatMul", "MatMul",
                                             "TestPause"}));
}

TEST(Overlap, BodiesOfFunctionsRunOneByOne) {
  FunctionPtr f = Traced("body", {{DType::kFloat, {2}}},
                         [](OpScope& s, const Values& in) -> Values {
                           return {s("TestPause", in, {{"us", int64_t{1}}}),
                                   s("TestPause", in, {{"us", int64_t{1}}})};
                         });
  auto e = Executable::Make(*f, nullptr);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ((*e)->num_overlapping(), 0);
}

// Random graphs: the results are those of the same graph without waiting.
TEST(Overlap, SameBitsAsOneByOne) {
  for (int seed = 0; seed < 40; ++seed) {
    Values results[2];
    std::vector<Tensor> outs[2];
    for (const bool waits : {false, true}) {
      std::mt19937 random(seed);
      Plain p;
      Values made{p.Feed({7, 9}), p.Feed({7, 9})};
      p.Build([&](OpScope& s) {
        for (int i = 0; i < 40; ++i) {
          const Value a = made[random() % made.size()];
          const Value b = made[random() % made.size()];
          const int64_t us = random() % 200;
          switch (random() % 6) {
            case 0:
              made.push_back(waits ? s("TestPause", {a}, {{"us", us}})
                                   : s("Identity", {a}));
              break;
            case 1:
              made.push_back(s("AddV2", {a, b}));
              break;
            case 2:
              made.push_back(s("Sub", {a, b}));
              break;
            case 3:
              made.push_back(s("Maximum", {a, b}));
              break;
            case 4:
              made.push_back(s("Neg", {a}));
              break;
            default:
              made.push_back(
                  s("MatMul", {s("MatMul", {a, b}, {{"transpose_b", true}}),
                               s("Tanh", {b})}));
          }
        }
      });
      auto e = p.Plan(Values(made.end() - 6, made.end()));
      std::vector<Tensor> in{Numbers({7, 9}, 3), Numbers({7, 9}, 5)};
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(RunPlan(*e, in, &outs[waits]).ok());
      }
    }
    for (size_t i = 0; i < outs[0].size(); ++i) {
      EXPECT_EQ(
          std::memcmp(outs[0][i].raw(), outs[1][i].raw(), outs[0][i].bytes()),
          0)
          << "seed " << seed << " result " << i;
    }
  }
}

TEST(Overlap, RunsOverlapToo) {
  Plain p;
  Value x = p.Feed({3}), y;
  p.Build([&](OpScope& s) {
    Value a = s("TestPause", {x}, {{"us", int64_t{300}}});
    Value b = s("TestPause", {s("Neg", {x})}, {{"us", int64_t{200}}});
    y = s("Sub", {a, b});
  });
  auto e = p.Plan({y});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const float v = static_cast<float>(100 * t + i);
        std::vector<Tensor> out;
        ASSERT_TRUE(RunPlan(*e, {Tensor::Vector<float>({v, 1, 2})}, &out).ok());
        EXPECT_EQ(out[0].data<float>()[0], 2 * v);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(Overlap, TheFirstErrorInOrderCounts) {
  Plain p;
  Value x = p.Feed({1}), slow, fast;
  p.Build([&](OpScope& s) {
    slow = s("TestFails", {x}, {{"us", int64_t{3000}}});
    fast = s("TestFails", {x}, {{"us", int64_t{10}}});
  });
  auto e = p.Plan({slow, fast});
  for (int i = 0; i < 5; ++i) {
    std::vector<Tensor> out;
    const Status s = RunPlan(*e, {Tensor::Vector<float>({1})}, &out);
    EXPECT_TRUE(absl::StrContains(s.message(), "failed after 3000")) << s;
  }
}

TEST(Overlap, AnErrorEndsWhatWaits) {
  Plain p;
  Value x = p.Feed({1}), waits, fails;
  p.Build([&](OpScope& s) {
    waits = s("TestMeet", {x}, {{"n", int64_t{100}}});
    fails = s("TestFails", {x}, {{"us", int64_t{10}}});
  });
  std::vector<Tensor> out;
  const Status s =
      RunPlan(*p.Plan({waits, fails}), {Tensor::Vector<float>({1})}, &out);
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
}

TEST(Overlap, DeadlinesAndCancellationEndWhatWaits) {
  Plain p;
  Value x = p.Feed({1}), a, b;
  p.Build([&](OpScope& s) {
    a = s("TestMeet", {x}, {{"n", int64_t{100}}});
    b = s("TestMeet", {s("Neg", {x})}, {{"n", int64_t{100}}});
  });
  auto e = p.Plan({a, b});
  std::vector<Tensor> out;
  {
    const Deadline soon(20);
    const Status s = RunPlan(*e, {Tensor::Vector<float>({1})}, &out);
    EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  }
  CancellationToken token;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.Cancel();
  });
  const StopScope scope(&token);
  const Status s = RunPlan(*e, {Tensor::Vector<float>({1})}, &out);
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  other.join();
}

TEST(Overlap, EffectsKeepTheOrderOfControlEdges) {
  Plain p;
  Value x = p.Feed({1}), a, b;
  std::vector<Node*> notes;
  p.Build([&](OpScope& s) {
    a = s("TestMeet", {x}, {{"n", int64_t{2}}});
    const auto note = [&](int64_t what, std::vector<Node*> behind) {
      p.builder.SetControlInputs(std::move(behind));
      s.All("TestNote", {}, {{"what", what}});
      notes.push_back(p.Last());
      p.builder.SetControlInputs({});
    };
    note(1, {a.node()});  // behind what waits
    note(2, {});          // which another needs
    p.builder.SetControlInputs({notes[1]});
    b = s("TestMeet", {s("Neg", {x})}, {{"n", int64_t{2}}});
    p.builder.SetControlInputs({});
    note(3, {notes[0], b.node()});
    note(4, {notes[2]});
  });
  auto e = p.Plan({a, b}, notes);
  for (int i = 0; i < 5; ++i) {
    TheShared().Clear();
    std::vector<Tensor> out;
    const Status s = RunPlan(*e, {Tensor::Vector<float>({1})}, &out);
    ASSERT_TRUE(s.ok()) << s;
    EXPECT_EQ(TheShared().Notes(), (std::vector<int64_t>{2, 1, 3, 4}));
  }
}

TEST(Overlap, ALongChainOfWaitingSteps) {
  Plain p;
  Value x = p.Feed({1}), y = x, z = x;
  p.Build([&](OpScope& s) {
    for (int i = 0; i < 200; ++i) {
      y = s("TestPause", {s("Neg", {y})}, {{"us", int64_t{0}}});
      z = s("TestPause", {s("Neg", {z})}, {{"us", int64_t{0}}});
    }
  });
  std::vector<Tensor> out;
  ASSERT_TRUE(
      RunPlan(*p.Plan({y, z}), {Tensor::Vector<float>({5})}, &out).ok());
  EXPECT_EQ(out[0].data<float>()[0], 5);
  EXPECT_EQ(out[1].data<float>()[0], 5);
}

TEST(Overlap, AsManyBusyStepsAsTheRunMayHave) {
  EXPECT_GE(InterOpScope::Threads(), 1);
  const InterOpScope one(1);
  EXPECT_EQ(InterOpScope::Threads(), 1);
  std::atomic<int> now{0}, most{0};
  {
    const InterOpScope two(2);
    WaitingSteps steps;
    for (int i = 0; i < 12; ++i) {
      steps.Start(i, /*busy=*/true, [&] {
        most = std::max(most.load(), ++now);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --now;
        return OkStatus();
      });
    }
    std::vector<bool> ended(12);
    while (steps.any()) ended[steps.Next().key] = true;
    EXPECT_EQ(std::count(ended.begin(), ended.end(), true), 12);
  }
  EXPECT_LE(most, 2);
}

TEST(Overlap, WhatIsLeftOfARunThatEndsIsEnded) {
  std::atomic<int> ran{0};
  {
    const InterOpScope one(1);
    WaitingSteps steps;
    for (int i = 0; i < 3; ++i) {
      steps.Start(i, /*busy=*/true, [&] {
        ++ran;
        while (CheckStop().ok()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return CheckStop();
      });
    }
  }
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace headrace
