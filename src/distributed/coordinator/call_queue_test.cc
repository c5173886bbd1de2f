// The rules of a coordinator's queue, without tasks.
#include "distributed/coordinator/call_queue.h"

#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

struct NumberedCall : QueuedCall {
  explicit NumberedCall(int n) : number(n) {}
  void Settle(const Status& s) override { ended = s; }
  const int number;
  std::optional<Status> ended;
};

using Taken = CallQueue::Taken;

class CallQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 6; ++i) {
      calls_.push_back(std::make_shared<NumberedCall>(i));
      ASSERT_TRUE(queue_.Put(calls_.back()).ok());
    }
  }
  static std::vector<int> NumbersOf(const std::vector<Taken>& taken) {
    std::vector<int> numbers;
    for (const Taken& t : taken) {
      numbers.push_back(static_cast<NumberedCall&>(*t.call).number);
    }
    return numbers;
  }
  // So many, or those that there are.
  std::vector<Taken> Take(size_t count) {
    return queue_.Take([=](const auto& taken, const Taken&, size_t) {
      return taken.size() < count;
    });
  }
  using Numbers = std::vector<int>;

  CallQueue queue_;
  std::vector<std::shared_ptr<NumberedCall>> calls_;
};

TEST_F(CallQueueTest, SeveralAreTakenAndPutBackInOrder) {
  EXPECT_EQ(NumbersOf(queue_.Take()), Numbers{0});
  size_t waited = 0;
  const auto two =
      queue_.Take([&](const auto& taken, const Taken& next, size_t waiting) {
        waited = waiting;
        EXPECT_EQ(static_cast<NumberedCall&>(*next.call).number,
                  1 + static_cast<int>(taken.size()));
        return taken.size() < 2;
      });
  EXPECT_EQ(NumbersOf(two), (Numbers{1, 2}));
  EXPECT_EQ(waited, 3u);  // beside those that are taken
  const auto others = Take(9);
  EXPECT_EQ(NumbersOf(others), (Numbers{3, 4, 5}));
  queue_.PutBack(others);
  queue_.PutBack(two);
  EXPECT_FALSE(*queue_.Done());
  const auto all = Take(9);
  EXPECT_EQ(NumbersOf(all), (Numbers{1, 2, 3, 4, 5}));
  for (const Taken& t : all) queue_.Finished(t);
  queue_.Finished({calls_[0], all[0].token});
  EXPECT_TRUE(*queue_.Done());
  for (const auto& call : calls_) EXPECT_TRUE(call->ended->ok());
}

TEST_F(CallQueueTest, AnErrorCancelsWhatIsPutBackBehindIt) {
  const auto first = Take(2), second = Take(2);
  queue_.Failed(first[0], DataLoss("mine"));
  EXPECT_TRUE(first[1].token->cancelled());
  queue_.PutBack({first[1]});
  queue_.PutBack(second);
  EXPECT_TRUE(absl::IsDataLoss(*calls_[0]->ended));
  for (int i = 1; i < 6; ++i) {
    EXPECT_TRUE(absl::IsCancelled(*calls_[i]->ended)) << i;
  }
  EXPECT_TRUE(absl::IsDataLoss(queue_.Wait()));
  EXPECT_TRUE(queue_.Wait().ok());  // it is told once
}

TEST_F(CallQueueTest, NoneIsTakenBehindTheStop) {
  const auto taken = Take(2);
  queue_.Stop(Cancelled("gone"));
  EXPECT_TRUE(queue_.Take().empty());
  queue_.PutBack(taken);
  for (const auto& call : calls_) {
    EXPECT_TRUE(absl::IsCancelled(*call->ended));
  }
  EXPECT_TRUE(absl::IsCancelled(queue_.Put(calls_[0])));
}

}  // namespace
}  // namespace headrace::distributed
