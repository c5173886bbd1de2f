// Runs that hold no thread while they wait.
#include <time.h>

#include <atomic>
#include <deque>
#include <new>
#include <thread>

#include "base/cancellation.h"
#include "base/job_threads.h"
#include "gtest/gtest.h"
#include "op/op.h"
#include "op/waiting.h"
#include "runtime/test_cut.h"

namespace headrace {
namespace {

// Takes so many microseconds of its thread's processor.
Status Works(KernelContext& c) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000'000 + t.tv_nsec / 1000;
  };
  const int64_t until = now() + c.op().int_attr("us");
  while (now() < until) {
  }
  if (c.op().int_attr("us") == 0) throw std::bad_alloc();
  c.set_output(0, c.input(0));
  return OkStatus();
}
HR_OP(TestWorks)
    .Input("x: float")
    .Output("y: float")
    .Attr("us: int")
    .Doc("Works, or, where that takes no time, throws.")
    .Stateful()
    .Cpu(ComputeOwn<Works>);

Status Blocks(KernelContext& c) {
  c.set_output(0, c.input(0));
  return OkStatus();
}
HR_OP(TestBlocks)
    .Traits({kMayWait})
    .Input("x: float")
    .Output("y: float")
    .Doc("May wait, with a thread.")
    .Shape(UnchangedShape)
    .Cpu(ComputeOwn<Blocks>);

// A run's host whose parts are run by the test, or by threads of their own.
class Host : public RunHost {
 public:
  explicit Host(Rendezvous* r, bool threads = false)
      : rendezvous_(r), threads_(threads) {}
  void Around(absl::FunctionRef<void()> part) override {
    const StopScope stop(&token);
    const RendezvousScope meeting(rendezvous_);
    part();
  }
  void GoOn(std::function<void()> part) override {
    if (threads_) {
      ASSERT_EQ(RunOnOwnThread(std::move(part)), OkStatus());
    } else {
      parts_.push_back(std::move(part));
    }
  }
  // Those that there are; how many.
  int RunParts() {
    int n = 0;
    for (; !parts_.empty(); ++n) {
      const std::function<void()> part = std::move(parts_.front());
      parts_.pop_front();
      part();
    }
    return n;
  }

  CancellationToken token;

 private:
  Rendezvous* const rendezvous_;
  const bool threads_;
  std::deque<std::function<void()>> parts_;
};

std::shared_ptr<Executable> PlanOf(Cut& cut, std::vector<Node*> targets,
                                   std::vector<Edge> fetches = {}) {
  auto e = Executable::Make(cut.graph(), {}, fetches, targets, nullptr);
  EXPECT_TRUE(e.ok()) << e.status();
  return *std::move(e);
}

// What has ended, and how.
struct End {
  PausingRun::Ended Taken() {
    return [this](Status s, std::vector<Tensor> f) {
      status = std::move(s);
      fetched = std::move(f);
      ++count;
    };
  }
  std::atomic<int> count = 0;
  Status status;
  std::vector<Tensor> fetched;
};

std::shared_ptr<PausingRun> Begin(const std::shared_ptr<Executable>& e,
                                  const std::shared_ptr<Host>& host, End* end) {
  EXPECT_TRUE(e->may_pause());
  auto run = Executable::MakePausing(e, {}, host);
  EXPECT_TRUE(run.ok()) << run.status();
  (*run)->Start({}, end->Taken());
  return *run;
}

TEST(PausingTest, GoesOnWithWhatComes) {
  Cut cut;
  const Edge sum =
      cut.Add("AddV2", {cut.RecvScalar("a"), cut.RecvScalar("b")}, {});
  Node* sent = cut.Send("sum", sum);
  const auto e = PlanOf(cut, {sent}, {sum});
  for (int i = 0; i < 3; ++i) {
    LocalRendezvous r;
    const auto host = std::make_shared<Host>(&r);
    End end;
    Begin(e, host, &end);
    EXPECT_EQ(end.count, 0);
    ASSERT_EQ(r.Send(KeyOf("b"), Sent(2)), OkStatus());
    EXPECT_EQ(host->RunParts(), 1);
    EXPECT_EQ(end.count, 0);
    ASSERT_EQ(r.Send(KeyOf("a"), Sent(1)), OkStatus());
    EXPECT_EQ(host->RunParts(), 1);
    ASSERT_EQ(end.count, 1);
    EXPECT_EQ(end.status, OkStatus());
    EXPECT_EQ(end.fetched.at(0).scalar<float>(), 3);
    EXPECT_EQ(Got(r, "sum"), 3);
    EXPECT_EQ(host->RunParts(), 0);
  }
}

TEST(PausingTest, NeedsNoPauseWhereAllIsThere) {
  Cut cut;
  const auto e = PlanOf(cut, {cut.Send("x", cut.RecvScalar("a"))});
  LocalRendezvous r;
  ASSERT_EQ(r.Send(KeyOf("a"), Sent(4)), OkStatus());
  End end;
  Begin(e, std::make_shared<Host>(&r), &end);
  EXPECT_EQ(end.count, 1);
  EXPECT_EQ(end.status, OkStatus());
  EXPECT_EQ(Got(r, "x"), 4);
}

TEST(PausingTest, ErrorsStopsAndExceptionsEndIt) {
  Cut cut;
  Node* a = cut.Send("x", cut.RecvScalar("a"));
  Node* b = cut.Send(
      "y", cut.Add("TestWorks", {cut.RecvScalar("b")}, {{"us", int64_t{0}}}));
  const auto e = PlanOf(cut, {a, b});
  const auto ends = [&](auto&& why) {
    LocalRendezvous r;
    const auto host = std::make_shared<Host>(&r);
    End end;
    const auto run = Begin(e, host, &end);
    why(r, *host, *run);
    host->RunParts();
    EXPECT_EQ(end.count, 1);
    EXPECT_TRUE(end.fetched.empty());
    return end.status;
  };
  Status s = ends([](auto& r, auto&, auto&) { r.Abort(Aborted("gone")); });
  EXPECT_TRUE(absl::IsAborted(s)) << s;
  s = ends([](auto& r, auto&, auto&) {
    ASSERT_EQ(r.Send(KeyOf("a"), {Tensor::Scalar<int32_t>(1)}), OkStatus());
  });
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  s = ends([](auto&, auto& host, auto& run) {
    run.Poke();  // for nothing
    EXPECT_EQ(host.RunParts(), 1);
    host.token.Cancel();
    run.Poke();
  });
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  s = ends([](auto& r, auto&, auto&) {
    ASSERT_EQ(r.Send(KeyOf("b"), Sent(1)), OkStatus());
  });
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
}

TEST(PausingTest, OnlyShortOnesMay) {
  Cut cut;
  const Edge a = cut.RecvScalar("a");
  EXPECT_TRUE(PlanOf(cut, {cut.Send("x", a)})->may_pause());
  // Needs a thread while it waits.
  EXPECT_FALSE(PlanOf(cut, {cut.Send("y", cut.Add("TestBlocks", {a}, {}))})
                   ->may_pause());
  // Of a size that nobody knows.
  const Edge some = cut.Add("Exp", {cut.Recv("some", true)}, {});
  EXPECT_FALSE(PlanOf(cut, {cut.Send("z", some)})->may_pause());
  // Waits for nothing.
  const Edge c =
      cut.Add("Const", {},
              {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(5)}});
  EXPECT_FALSE(PlanOf(cut, {cut.Send("c", c)})->may_pause());
  // Has shown that it takes long.
  const auto e = PlanOf(
      cut, {cut.Send("w", cut.Add("TestWorks", {a}, {{"us", int64_t{3000}}}))});
  for (int i = 0; i < 3; ++i) {
    LocalRendezvous r;
    ASSERT_EQ(r.Send(KeyOf("a"), Sent(4)), OkStatus());
    End end;
    Begin(e, std::make_shared<Host>(&r), &end);
    EXPECT_EQ(end.status, OkStatus());
  }
  EXPECT_FALSE(e->may_pause());
}

// Values, stops and ends meet on several threads.
TEST(PausingTest, ManyAtOnce) {
  Cut cut;
  const Edge a = cut.RecvScalar("a"), b = cut.RecvScalar("b");
  const Edge sum = cut.Add("AddV2", {a, b}, {});
  const auto e = PlanOf(cut, {cut.Send("x", sum)}, {sum});
  for (int i = 0; i < 200; ++i) {
    LocalRendezvous r;
    const auto host = std::make_shared<Host>(&r, /*threads=*/true);
    End end;
    const auto run = Begin(e, host, &end);
    std::thread one([&] { r.Send(KeyOf("a"), Sent(1)).IgnoreError(); });
    std::thread two([&] {
      if (i % 4 == 3) {
        host->token.Cancel();
        run->Poke();
      } else {
        r.Send(KeyOf("b"), Sent(2)).IgnoreError();
      }
    });
    one.join();
    two.join();
    while (end.count == 0) std::this_thread::yield();
    if (i % 4 == 3) {
      EXPECT_TRUE(absl::IsCancelled(end.status)) << end.status;
    } else {
      EXPECT_EQ(end.status, OkStatus());
      EXPECT_EQ(end.fetched.at(0).scalar<float>(), 3);
    }
    EXPECT_EQ(end.count, 1);
  }
}

}  // namespace
}  // namespace headrace
