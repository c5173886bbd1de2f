// Calls of queues that wait for each other.
#include "ops/queue/tuple_queue.h"

#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "base/cancellation.h"
#include "eager/eager_emitter.h"
#include "gtest/gtest.h"
#include "op/resource.h"

namespace headrace {
namespace {

std::shared_ptr<TupleQueue> MakeQueue(int64_t capacity,
                                      const char* op = "FIFOQueueV2",
                                      int64_t kept = 0) {
  AttrMap attrs = {
      {"component_types", std::vector<DType>{DType::kInt64}},
      {"shapes", std::vector<Shape>{Shape{}}},
      {"capacity", capacity},
  };
  if (kept > 0) attrs.Set("min_after_dequeue", kept);
  auto made = RunOp(op, {}, attrs);
  EXPECT_TRUE(made.ok()) << made.status();
  // The handle of a queue without a name holds it; so does what is given back.
  return *ResourceAs<TupleQueue>((*made)[0], &DefaultResources());
}

std::vector<Tuple> Numbers(int64_t from, int64_t to) {
  std::vector<Tuple> tuples;
  for (int64_t i = from; i < to; ++i) {
    tuples.push_back({Tensor::Scalar<int64_t>(i)});
  }
  return tuples;
}

std::vector<int64_t> ValuesOf(const std::vector<Tuple>& tuples) {
  std::vector<int64_t> values;
  for (const Tuple& t : tuples) values.push_back(t[0].scalar<int64_t>());
  return values;
}

using Values = std::vector<int64_t>;

// A call in a thread of its own, which may be told to stop.
class Call {
 public:
  explicit Call(std::function<Status()> work) {
    thread_ = std::thread([this, work = std::move(work)] {
      const StopScope scope(&token_);
      status_ = work();
      done_ = true;
    });
  }
  ~Call() {
    token_.Cancel();  // of a test that failed
    if (thread_.joinable()) thread_.join();
  }
  // Long enough to come to wait; a call that is slower makes a test easier,
  // never fail.
  void LetWait() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }
  bool done() const { return done_; }
  void Cancel() { token_.Cancel(); }
  Status Join() {
    thread_.join();
    return status_;
  }

 private:
  CancellationToken token_;
  std::atomic<bool> done_{false};
  Status status_;
  std::thread thread_;
};

// Takes `n` tuples into `values`.
std::function<Status()> Taking(TupleQueue* queue, int64_t n, Values* values,
                               bool up_to = false) {
  return [=]() -> Status {
    HR_ASSIGN_OR_RETURN(const auto tuples, queue->Dequeue(n, up_to));
    *values = ValuesOf(tuples);
    return OkStatus();
  };
}

TEST(TupleQueue, TakersAreServedInTheOrderInWhichTheyCame) {
  const auto queue = MakeQueue(2);
  Values a, b, c;
  Call first(Taking(queue.get(), 5, &a));
  first.LetWait();
  Call second(Taking(queue.get(), 1, &b));
  second.LetWait();
  Call third(Taking(queue.get(), 3, &c));
  third.LetWait();
  for (int64_t i = 0; i < 9; ++i) {
    // The second could go on at once, but it is not its turn.
    if (i == 4) {
      EXPECT_FALSE(second.done());
    }
    ASSERT_TRUE(queue->Enqueue(Numbers(i, i + 1)).ok());
  }
  ASSERT_TRUE(first.Join().ok() && second.Join().ok() && third.Join().ok());
  EXPECT_EQ(a, (Values{0, 1, 2, 3, 4}));
  EXPECT_EQ(b, (Values{5}));
  EXPECT_EQ(c, (Values{6, 7, 8}));
  EXPECT_EQ(queue->size(), 0);
}

TEST(TupleQueue, WhoPutsIsServedInTheOrderInWhichTheyCame) {
  const auto queue = MakeQueue(2);
  Call first([&] { return queue->Enqueue(Numbers(0, 5)); });
  first.LetWait();
  Call second([&] { return queue->Enqueue(Numbers(5, 6)); });
  second.LetWait();
  Call third([&] { return queue->Enqueue(Numbers(6, 9)); });
  third.LetWait();
  EXPECT_EQ(queue->size(), 2);
  Values all;
  ASSERT_TRUE(Taking(queue.get(), 9, &all)().ok());
  EXPECT_EQ(all, (Values{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(first.Join().ok() && second.Join().ok() && third.Join().ok());
}

TEST(TupleQueue, ATakerThatIsStoppedPutsBackAndTheNextGoesOn) {
  const auto queue = MakeQueue(10);
  ASSERT_TRUE(queue->Enqueue(Numbers(0, 3)).ok());
  Values a, b;
  Call first(Taking(queue.get(), 5, &a));
  first.LetWait();
  EXPECT_EQ(queue->size(), 0);  // the first has them
  Call second(Taking(queue.get(), 2, &b));
  second.LetWait();
  EXPECT_FALSE(first.done() || second.done());
  first.Cancel();
  EXPECT_TRUE(absl::IsCancelled(first.Join()));
  ASSERT_TRUE(second.Join().ok());
  EXPECT_EQ(b, (Values{0, 1}));
  EXPECT_EQ(queue->size(), 1);
}

TEST(TupleQueue, ATakerThatIsStoppedInTheMiddleOfTheLineLeavesIt) {
  const auto queue = MakeQueue(10);
  Values a, b, c;
  Call first(Taking(queue.get(), 2, &a));
  first.LetWait();
  Call second(Taking(queue.get(), 1, &b));
  second.LetWait();
  Call third(Taking(queue.get(), 1, &c));
  third.LetWait();
  second.Cancel();
  EXPECT_TRUE(absl::IsCancelled(second.Join()));
  ASSERT_TRUE(queue->Enqueue(Numbers(0, 3)).ok());
  ASSERT_TRUE(first.Join().ok() && third.Join().ok());
  EXPECT_EQ(a, (Values{0, 1}));
  EXPECT_EQ(c, (Values{2}));
}

TEST(TupleQueue, WhoPutsAndIsStoppedLeavesWhatIsIn) {
  const auto queue = MakeQueue(2);
  Call first([&] { return queue->Enqueue(Numbers(0, 5)); });
  first.LetWait();
  Call second([&] { return queue->Enqueue(Numbers(10, 12)); });
  second.LetWait();
  first.Cancel();
  EXPECT_TRUE(absl::IsCancelled(first.Join()));
  Values all;
  ASSERT_TRUE(Taking(queue.get(), 4, &all)().ok());
  EXPECT_EQ(all, (Values{0, 1, 10, 11}));
  EXPECT_TRUE(second.Join().ok());
}

TEST(TupleQueue, AClosedQueueLetsWhoWaitsForRoomGoOn) {
  const auto queue = MakeQueue(2);
  Call put([&] { return queue->Enqueue(Numbers(0, 4)); });
  put.LetWait();
  ASSERT_TRUE(queue->Close(/*cancel_pending=*/false).ok());
  EXPECT_TRUE(absl::IsCancelled(queue->Enqueue(Numbers(9, 10))));
  Values all;
  ASSERT_TRUE(Taking(queue.get(), 4, &all)().ok());
  EXPECT_EQ(all, (Values{0, 1, 2, 3}));
  EXPECT_TRUE(put.Join().ok());
  const Status none = Taking(queue.get(), 1, &all)();
  EXPECT_TRUE(absl::IsOutOfRange(none)) << none;
}

TEST(TupleQueue, ACloseThatCancelsEndsWhoWaitsForRoom) {
  const auto queue = MakeQueue(2);
  Call put([&] { return queue->Enqueue(Numbers(0, 4)); });
  put.LetWait();
  ASSERT_TRUE(queue->Close(/*cancel_pending=*/true).ok());
  EXPECT_TRUE(absl::IsCancelled(put.Join()));
  Values all;
  const Status few = Taking(queue.get(), 3, &all)();
  EXPECT_TRUE(absl::IsOutOfRange(few)) << few;
  EXPECT_NE(few.message().find("(requested 3, current size 2)"),
            StringView::npos)
      << few;
  ASSERT_TRUE(Taking(queue.get(), 3, &all, /*up_to=*/true)().ok());
  EXPECT_EQ(all, (Values{0, 1}));
}

TEST(TupleQueue, ACloseEndsWhoWaitsForElementsInTheirTurn) {
  const auto queue = MakeQueue(10);
  ASSERT_TRUE(queue->Enqueue(Numbers(0, 3)).ok());
  Values a, b, c;
  Call first(Taking(queue.get(), 5, &a));
  first.LetWait();
  Call second(Taking(queue.get(), 2, &b));
  second.LetWait();
  Call third(Taking(queue.get(), 4, &c, /*up_to=*/true));
  third.LetWait();
  ASSERT_TRUE(queue->Close(/*cancel_pending=*/false).ok());
  EXPECT_TRUE(absl::IsOutOfRange(first.Join()));
  ASSERT_TRUE(second.Join().ok() && third.Join().ok());
  EXPECT_EQ(b, (Values{0, 1}));
  EXPECT_EQ(c, (Values{2}));
}

TEST(TupleQueue, AShufflingQueueKeepsSomeUntilItIsClosed) {
  const auto queue = MakeQueue(6, "RandomShuffleQueueV2", /*kept=*/3);
  ASSERT_TRUE(queue->Enqueue(Numbers(0, 5)).ok());
  Values all;
  Call take(Taking(queue.get(), 5, &all));
  take.LetWait();
  EXPECT_EQ(queue->size(), 3);
  ASSERT_TRUE(queue->Close(/*cancel_pending=*/false).ok());
  ASSERT_TRUE(take.Join().ok());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Values{0, 1, 2, 3, 4}));
}

// Whatever the order of threads, each element is taken once.
TEST(TupleQueue, ManyThreadsLoseNothing) {
  const auto queue = MakeQueue(3);
  constexpr int kThreads = 4, kTurns = 50, kMany = 5;
  std::vector<std::thread> threads;
  std::vector<Values> taken(kThreads);
  std::atomic<int> errors{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < kTurns; ++k) {
        const int64_t from = (t * kTurns + k) * kMany;
        errors += !queue->Enqueue(Numbers(from, from + kMany)).ok();
      }
    });
    threads.emplace_back([&, t] {
      for (int k = 0; k < kTurns; ++k) {
        const auto tuples = queue->Dequeue(kMany, false);
        errors += !tuples.ok();
        if (!tuples.ok()) continue;
        for (const int64_t v : ValuesOf(*tuples)) taken[t].push_back(v);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(errors, 0);
  Values all, want(kThreads * kTurns * kMany);
  for (const Values& v : taken) all.insert(all.end(), v.begin(), v.end());
  std::sort(all.begin(), all.end());
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(all, want);
}

}  // namespace
}  // namespace headrace
