// Calls of queues and accumulators that wait in line without a thread, as plans
// have them.
#include <atomic>
#include <random>
#include <thread>

#include "eager/eager_emitter.h"
#include "gtest/gtest.h"
#include "op/resource.h"
#include "ops/queue/accumulator.h"
#include "ops/queue/tuple_queue.h"

namespace headrace {
namespace {

using Numbers = std::vector<int64_t>;

std::shared_ptr<TupleQueue> QueueFor(int64_t capacity) {
  auto made = RunOp("FIFOQueueV2", {},
                    {{"component_types", std::vector<DType>{DType::kInt64}},
                     {"shapes", std::vector<Shape>{Shape{}}},
                     {"capacity", capacity}});
  EXPECT_TRUE(made.ok()) << made.status();
  return *ResourceAs<TupleQueue>((*made)[0], &DefaultResources());
}

// A call that is tried again when it is told to be.
class Awaiting {
 public:
  explicit Awaiting(std::function<Status()> call) : call_(std::move(call)) {}

  // Whether it has ended.
  bool Try() {
    {
      const WaitRefusal refused(&place_);
      status_ = call_();
    }
    if (!IsWouldWait(status_)) {
      place_.reset();
      return true;
    }
    place_->Await([told = told_] { ++*told; });
    return false;
  }
  void GiveUp() { place_.reset(); }
  int told() const { return *told_; }
  const Status& status() const { return status_; }

 private:
  const std::function<Status()> call_;
  const std::shared_ptr<std::atomic<int>> told_ =
      std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<WaitingPlace> place_;
  Status status_;
};

std::function<Status()> Puts(const std::shared_ptr<TupleQueue>& queue,
                             Numbers numbers) {
  return [=]() -> Status {
    if (auto* place = WaitRefusal::Left()) return queue->GoOnEnqueuing(*place);
    std::vector<Tuple> tuples;
    for (const int64_t x : numbers) {
      tuples.push_back({Tensor::Scalar<int64_t>(x)});
    }
    return queue->Enqueue(std::move(tuples));
  };
}

std::function<Status()> Takes(const std::shared_ptr<TupleQueue>& queue,
                              int64_t n, Numbers* to, bool up_to = false) {
  return [=]() -> Status {
    auto* place = WaitRefusal::Left();
    auto taken =
        place ? queue->GoOnDequeuing(*place) : queue->Dequeue(n, up_to);
    HR_RETURN_IF_ERROR(taken.status());
    for (const Tuple& t : *taken) to->push_back(t[0].scalar<int64_t>());
    return OkStatus();
  };
}

TEST(WaitingPlaces, WhoAskedFirstGetsFirst) {
  const auto queue = QueueFor(10);
  Numbers first, second, third;
  Awaiting a(Takes(queue, 1, &first)), c(Takes(queue, 2, &third));
  EXPECT_FALSE(a.Try());
  // Between them one that has a thread.
  std::thread b([&] { EXPECT_EQ(Takes(queue, 1, &second)(), OkStatus()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(c.Try());
  EXPECT_FALSE(c.Try());  // which keeps its place, and has one alone
  EXPECT_EQ(Puts(queue, {1, 2, 3})(), OkStatus());
  b.join();
  EXPECT_EQ(a.told(), 1);
  EXPECT_EQ(c.told(), 0);  // one is missing
  EXPECT_TRUE(a.Try());
  EXPECT_FALSE(c.Try());
  EXPECT_EQ(queue->size(), 0);
  EXPECT_EQ(Puts(queue, {4})(), OkStatus());
  EXPECT_EQ(c.told(), 1);
  EXPECT_TRUE(c.Try());
  EXPECT_EQ(first, Numbers{1});
  EXPECT_EQ(second, Numbers{2});
  EXPECT_EQ(third, (Numbers{3, 4}));
}

TEST(WaitingPlaces, WhatAGivenUpOneHadIsTheNextOnes) {
  const auto queue = QueueFor(10);
  Numbers got;
  Awaiting a(Takes(queue, 2, &got)), b(Takes(queue, 2, &got)),
      c(Takes(queue, 1, &got));
  EXPECT_FALSE(a.Try());
  EXPECT_FALSE(b.Try());
  EXPECT_FALSE(c.Try());
  EXPECT_EQ(Puts(queue, {1, 2, 3})(), OkStatus());
  EXPECT_EQ(a.told(), 1);
  a.GiveUp();  // told, and not tried
  EXPECT_EQ(b.told(), 1);
  EXPECT_TRUE(b.Try());
  EXPECT_EQ(got, (Numbers{1, 2}));
  EXPECT_EQ(c.told(), 1);
  c.GiveUp();
  EXPECT_EQ(queue->size(), 1);
  Awaiting none(Takes(queue, 5, &got));
  EXPECT_FALSE(none.Try());
  none.GiveUp();  // what it has taken of its five is there again
  EXPECT_EQ(queue->size(), 1);
  EXPECT_EQ(Takes(queue, 1, &got)(), OkStatus());
  EXPECT_EQ(got, (Numbers{1, 2, 3}));
}

TEST(WaitingPlaces, WhoPutsFirstIsInFirst) {
  const auto queue = QueueFor(2);
  Numbers got;
  Awaiting a(Puts(queue, {1, 2, 3})), gone(Puts(queue, {9})),
      b(Puts(queue, {4}));
  EXPECT_FALSE(a.Try());  // two are in
  EXPECT_EQ(queue->size(), 2);
  EXPECT_FALSE(gone.Try());
  EXPECT_FALSE(b.Try());
  gone.GiveUp();
  EXPECT_EQ(Takes(queue, 1, &got)(), OkStatus());
  EXPECT_EQ(a.told(), 1);
  EXPECT_TRUE(a.Try());
  EXPECT_EQ(b.told(), 0);
  EXPECT_EQ(Takes(queue, 3, &got)(), OkStatus());
  EXPECT_EQ(b.told(), 1);
  EXPECT_TRUE(b.Try());
  EXPECT_EQ(got, (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(queue->size(), 0);
}

TEST(WaitingPlaces, ClosingTellsThem) {
  for (const bool cancels : {false, true}) {
    const auto queue = QueueFor(1);
    Numbers got;
    Awaiting full(Puts(queue, {1, 2}));
    EXPECT_FALSE(full.Try());
    ASSERT_TRUE(queue->Close(cancels).ok());
    EXPECT_EQ(full.told(), cancels ? 1 : 0);
    EXPECT_EQ(full.Try(), cancels);
    EXPECT_EQ(absl::IsCancelled(full.status()), cancels);
    Awaiting some(Takes(queue, 3, &got, /*up_to=*/true));
    // It has all there is once it has let the other one put in the second.
    if (!some.Try()) {
      EXPECT_EQ(some.told(), 1);
      EXPECT_TRUE(some.Try());
    }
    EXPECT_EQ(some.status(), OkStatus());
    EXPECT_EQ(got, cancels ? Numbers{1} : (Numbers{1, 2}));
    EXPECT_TRUE(full.Try());
  }
  const auto queue = QueueFor(5);
  Numbers got;
  Awaiting a(Takes(queue, 2, &got)), b(Takes(queue, 1, &got)),
      c(Takes(queue, 1, &got));
  for (Awaiting* x : {&a, &b, &c}) EXPECT_FALSE(x->Try());
  EXPECT_EQ(Puts(queue, {1})(), OkStatus());
  ASSERT_TRUE(queue->Close(false).ok());
  EXPECT_EQ(a.told(), 1);
  EXPECT_TRUE(a.Try());
  EXPECT_TRUE(absl::IsOutOfRange(a.status())) << a.status();
  EXPECT_EQ(b.told(), 1);  // has what the first could not use
  EXPECT_TRUE(b.Try());
  EXPECT_EQ(got, Numbers{1});
  EXPECT_EQ(c.told(), 1);
  EXPECT_TRUE(c.Try());
  EXPECT_TRUE(absl::IsOutOfRange(c.status())) << c.status();
}

TEST(WaitingPlaces, ManyThreads) {
  constexpr int kThreads = 4;
  constexpr int64_t kEach = 2000;
  const auto queue = QueueFor(3);
  std::vector<Numbers> got(kThreads);
  std::atomic<int64_t> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < kEach; ++i) {
        Awaiting put(Puts(queue, {t * kEach + i}));
        for (int told = 0; !put.Try(); told = put.told()) {
          while (put.told() == told) std::this_thread::yield();
        }
        EXPECT_EQ(put.status(), OkStatus());
      }
    });
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      while (taken < kThreads * kEach) {
        Awaiting take(Takes(queue, 1, &got[t]));
        bool ended = take.Try();
        for (int looks = 0; !ended; ++looks) {
          std::this_thread::yield();
          // Some go away, whether they have been told or not.
          if (random() % 8 == 0 || looks > 1000) break;
          if (take.told() > 0) ended = take.Try();
        }
        if (ended) ++taken;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::vector<int> times(kThreads * kEach);
  for (const Numbers& numbers : got) {
    for (const int64_t x : numbers) ++times[x];
  }
  for (const int n : times) EXPECT_EQ(n, 1);
  EXPECT_EQ(queue->size(), 0);
}

TEST(WaitingPlaces, AccumulatorsTellWhoHasEnough) {
  const auto sums = std::make_shared<DenseAccumulator>("sums", DType::kFloat,
                                                       Shape{}, /*mean=*/true);
  const auto add = [&](float x) {
    EXPECT_EQ(sums->Add(1, Tensor::Scalar<float>(x)), OkStatus());
  };
  float got = 0;
  const auto takes = [&]() -> Status {
    HR_ASSIGN_OR_RETURN(const Tensor sum, sums->Take(2));
    got = sum.scalar<float>();
    return OkStatus();
  };
  Awaiting a(takes), gone(takes), b(takes),
      end([&] { return sums->AwaitEnd(0); });
  EXPECT_FALSE(a.Try());
  EXPECT_FALSE(gone.Try());
  EXPECT_FALSE(b.Try());
  EXPECT_FALSE(end.Try());
  gone.GiveUp();
  add(1);
  EXPECT_EQ(a.told(), 0);
  add(3);
  EXPECT_EQ(a.told(), 1);
  EXPECT_EQ(b.told(), 1);
  EXPECT_EQ(gone.told(), 0);
  EXPECT_EQ(end.told(), 0);
  EXPECT_TRUE(b.Try());
  EXPECT_EQ(got, 2);
  EXPECT_EQ(end.told(), 1);
  EXPECT_TRUE(end.Try());
  EXPECT_FALSE(a.Try());  // the other one took it
  add(4);
  add(5);
  EXPECT_EQ(a.told(), 2);
  EXPECT_TRUE(a.Try());
  EXPECT_EQ(got, 4.5f);
}

}  // namespace
}  // namespace headrace
