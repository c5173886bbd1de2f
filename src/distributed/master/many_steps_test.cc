// Steps of one call, without their runs.
#include "distributed/master/many_steps.h"

#include <atomic>
#include <climits>
#include <thread>

#include "distributed/test_call.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using tensorflow::RunStepResponse;

constexpr Clock::time_point kFar = Clock::time_point::max();

// Whose parts are sent when the test says so.
class SlowCall : public TestCall {
 public:
  void Send(Bytes part, std::function<void(bool)> sent) override {
    TestCall::Send(std::move(part), [](bool) {});
    sent_ = std::move(sent);
  }
  void Sent(bool goes_on) { std::exchange(sent_, nullptr)(goes_on); }

 private:
  std::function<void(bool)> sent_;
};

RunStepResponse Named(const std::string& name) {
  RunStepResponse response;
  response.add_tensor()->set_name(name);
  return response;
}

std::vector<std::string> NamesIn(const Bytes& part) {
  RunStepsResponse read;
  EXPECT_EQ(ReadMessage(part, &read), OkStatus());
  std::vector<std::string> names;
  for (const auto& done : read.done()) {
    names.push_back(done.tensor_size() > 0 ? done.tensor(0).name()
                                           : done.status_error_message());
  }
  return names;
}

using Names = std::vector<std::string>;

std::shared_ptr<ManySteps> Of(std::shared_ptr<ServerCall> call, int count,
                              Clock::time_point until = kFar) {
  return std::make_shared<ManySteps>(std::move(call), count, until);
}

TEST(ManySteps, WhatHasEndedGoesOutAtOnce) {
  const auto call = std::make_shared<TestCall>(/*takes_parts=*/true);
  const auto steps = Of(call, 3);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(steps->Begin());
    steps->End(Named(name));
  }
  ASSERT_EQ(call->parts().size(), 2u);  // the last goes with the answer
  EXPECT_EQ(NamesIn(call->parts()[0]), Names{"a"});
  EXPECT_EQ(NamesIn(call->parts()[1]), Names{"b"});
  EXPECT_FALSE(call->ended());
  EXPECT_FALSE(steps->Begin());
  steps->Finish(OkStatus());
  EXPECT_EQ(NamesIn(call->answer().body), Names{"c"});
}

TEST(ManySteps, WhatEndsWhileAPartIsOnItsWayGoesTogether) {
  const auto call = std::make_shared<SlowCall>();
  const auto steps = Of(call, 9);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(steps->Begin());
    steps->End(Named(name));
  }
  ASSERT_EQ(call->parts().size(), 1u);
  call->Sent(true);
  ASSERT_EQ(call->parts().size(), 2u);
  EXPECT_EQ(NamesIn(call->parts()[1]), (Names{"b", "c"}));
  // So does what has ended when no more are to begin, though one still runs.
  ASSERT_TRUE(steps->Begin());
  steps->End(Named("d"));
  ASSERT_TRUE(steps->Begin());
  EXPECT_EQ(steps->GiveBack(), 5);
  call->Sent(true);
  ASSERT_EQ(call->parts().size(), 3u);
  EXPECT_EQ(NamesIn(call->parts()[2]), Names{"d"});
  steps->End(Named("e"));
  EXPECT_FALSE(steps->Begin());
  steps->Finish(OkStatus());
  EXPECT_FALSE(call->ended());  // behind the part
  call->Sent(true);
  EXPECT_EQ(NamesIn(call->answer().body), Names{"e"});
}

TEST(ManySteps, BehindAnErrorOrLateNoneBegins) {
  auto call = std::make_shared<TestCall>(/*takes_parts=*/true);
  auto steps = Of(call, 3);
  ASSERT_TRUE(steps->Begin());
  RunStepResponse failed;
  failed.set_status_code(tensorflow::error::ABORTED);
  failed.set_status_error_message("why");
  steps->End(failed);
  EXPECT_FALSE(steps->Begin());
  steps->Finish(OkStatus());
  EXPECT_EQ(NamesIn(call->answer().body), Names{"why"});

  call = std::make_shared<TestCall>(/*takes_parts=*/true);
  steps = Of(call, 3, Clock::now() - std::chrono::seconds(1));
  EXPECT_TRUE(steps->Begin());  // one does, however late
  steps->End(Named("a"));
  EXPECT_FALSE(steps->Begin());
  steps->Finish(Cancelled("the call's own error"));
  EXPECT_EQ(StatusOf(call->answer()), Cancelled("the call's own error"));
}

TEST(ManySteps, ACallerThatIsGoneEndsThem) {
  const auto call = std::make_shared<TestCall>();  // takes no parts
  const auto steps = Of(call, 3);
  ASSERT_TRUE(steps->Begin());
  steps->End(Named("a"));
  EXPECT_FALSE(steps->Begin());
  steps->Finish(OkStatus());
  EXPECT_TRUE(call->ended());
}

TEST(ManySteps, WhatWaitsToBeSentIsBounded) {
  const auto call = std::make_shared<SlowCall>();
  const auto steps = Of(call, 100);
  const std::string megabytes(size_t{6} << 20, 'x');
  int begun = 0;
  while (steps->Begin()) {
    ++begun;
    steps->End(Named(megabytes));
  }
  EXPECT_EQ(begun, 4);  // one is sent, three wait
  steps->Finish(OkStatus());
  call->Sent(true);
  EXPECT_EQ(NamesIn(call->answer().body).size(), 3u);
}

// Whoever wants steps back while they run is told how many will have ended.
TEST(ManySteps, GivenBackWhileTheyRun) {
  ManyStepsCalls calls;
  for (int round = 0; round < 50; ++round) {
    const auto call = std::make_shared<TestCall>(/*takes_parts=*/true);
    const auto begun = calls.Begin(call, 7, INT_MAX, INT64_MAX);
    ASSERT_TRUE(begun.ok()) << begun.status();
    const std::shared_ptr<ManySteps>& steps = *begun;
    std::atomic<int> ended_by_now{0};
    EXPECT_TRUE(absl::IsAborted(calls.Begin(call, 7, 1, 0).status()));
    std::thread runs([&] {
      for (; steps->Begin(); ++ended_by_now) steps->End(Named("a"));
      calls.Remove(7);
      steps->Finish(OkStatus());
    });
    while (ended_by_now < round) std::this_thread::yield();
    GiveBackStepsRequest request;
    request.set_request_id(7);
    GiveBackStepsResponse given;
    ASSERT_EQ(calls.GiveBack(request, &given), OkStatus());
    runs.join();
    size_t ended = NamesIn(call->answer().body).size();
    for (const Bytes& part : call->parts()) ended += NamesIn(part).size();
    EXPECT_EQ(static_cast<size_t>(given.begun()), ended);
    EXPECT_TRUE(absl::IsNotFound(calls.GiveBack(request, &given)));
  }
}

}  // namespace
}  // namespace headrace::distributed
