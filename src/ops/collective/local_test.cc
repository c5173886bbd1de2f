// Members of a group that are threads.
#include <thread>

#include "base/cancellation.h"
#include "gtest/gtest.h"
#include "ops/collective/collective.h"

namespace headrace {
namespace {

CollectiveCall Sum(int processor, int64_t size, int64_t instance, Tensor x) {
  CollectiveCall call;
  call.member = {.group_key = 1, .group_size = size, .processor = processor};
  call.instance_key = instance;
  call.dtype = x.dtype();
  call.shape = x.shape();
  call.merge_op = "Add";
  call.final_op = "Id";
  call.input = std::move(x);
  return call;
}

// What `call` gives on each of so many threads.
template <typename F>
std::vector<StatusOr<Tensor>> OnThreads(int count, F call) {
  std::vector<StatusOr<Tensor>> results(count, Internal("not run"));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] { results[i] = call(i); });
  }
  for (std::thread& t : threads) t.join();
  return results;
}

// The sum of 1e8, 1 and -1e8, as floats, depends on the order.
TEST(LocalCollectives, TheOrderOfRanksDecidesTheBits) {
  const float values[] = {1e8f, 1, -1e8f};
  const float wanted = values[0] + values[1] + values[2];
  const auto engine = LocalCollectives();
  for (int64_t turn = 0; turn < 20; ++turn) {
    const auto sums = OnThreads(3, [&](int i) {
      return engine->Run(Sum(i, 3, turn, Tensor::Vector<float>({values[i]})));
    });
    for (const auto& sum : sums) {
      ASSERT_TRUE(sum.ok()) << sum.status();
      EXPECT_EQ(sum->data<float>()[0], wanted);
    }
  }
}

// Whoever is ahead begins the next round of an instance, while others have yet
// to take what the last one gave.
TEST(LocalCollectives, RoundsOfOneInstanceDoNotMix) {
  const auto engine = LocalCollectives();
  std::atomic<int> wrong{0};
  OnThreads(4, [&](int i) -> StatusOr<Tensor> {
    for (int64_t k = 0; k < 200; ++k) {
      HR_ASSIGN_OR_RETURN(
          const Tensor sum,
          engine->Run(Sum(i, 4, 7, Tensor::Vector<int64_t>({k + i}))));
      wrong += sum.data<int64_t>()[0] != 4 * k + 6;
    }
    return Tensor();
  });
  EXPECT_EQ(wrong, 0);
}

TEST(LocalCollectives, AMemberThatIsStoppedLeavesAndMayComeAgain) {
  const auto engine = LocalCollectives();
  CancellationToken token;
  StatusOr<Tensor> first = Internal("not run");
  std::thread waits([&] {
    const StopScope scope(&token);
    first = engine->Run(Sum(0, 2, 1, Tensor::Vector<float>({1})));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  token.Cancel();
  waits.join();
  EXPECT_TRUE(absl::IsCancelled(first.status())) << first.status();
  for (const auto& sum : OnThreads(2, [&](int i) {
         return engine->Run(Sum(i, 2, 1, Tensor::Vector<float>({1})));
       })) {
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(sum->data<float>()[0], 2);
  }
}

TEST(LocalCollectives, AnAbortEndsAllWhoWaitAndWhoCome) {
  const auto engine = LocalCollectives();
  StatusOr<Tensor> first = Internal("not run");
  std::thread waits(
      [&] { first = engine->Run(Sum(0, 2, 1, Tensor::Vector<float>({1}))); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  engine->Abort(absl::UnavailableError("peer down"));
  waits.join();
  EXPECT_TRUE(absl::IsUnavailable(first.status())) << first.status();
  const auto later = engine->Run(Sum(0, 1, 1, Tensor::Vector<float>({1})));
  EXPECT_TRUE(absl::IsUnavailable(later.status()));
  EXPECT_NE(later.status().message().find("peer down"), StringView::npos);
}

// Instances are forgotten, but for those in which somebody waits.
TEST(LocalCollectives, ManyInstances) {
  const auto engine = LocalCollectives();
  for (int64_t k = 0; k < 10000; ++k) {
    const auto sum = engine->Run(Sum(0, 1, k, Tensor::Vector<float>({2})));
    ASSERT_TRUE(sum.ok()) << sum.status();
  }
}

class Doubling : public CollectiveEngine {
 public:
  Status Join(const GroupMember&) override { return OkStatus(); }
  StatusOr<Tensor> Run(const CollectiveCall& call) override {
    return CollectiveResults(call, {call.input, call.input})->at(0);
  }
  void Abort(const Status&) override {}
};

TEST(LocalCollectives, AnotherEngineMayTakeTheirPlace) {
  UseCollectiveEngine(std::make_shared<Doubling>());
  auto sum =
      TheCollectiveEngine()->Run(Sum(0, 9, 1, Tensor::Vector<float>({3})));
  UseCollectiveEngine(nullptr);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->data<float>()[0], 6);
}

}  // namespace
}  // namespace headrace
