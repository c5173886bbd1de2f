#include "distributed/group/leader.h"

#include "distributed/local_transport.h"
#include "distributed/test_call.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

std::string DeviceOfTask(int task) {
  return absl::StrCat("/job:w/replica:0/task:", task, "/device:CPU:0");
}

JoinGroupRequest JoinOf(int group, int size, int task = 0) {
  JoinGroupRequest request;
  request.set_group_key(group);
  request.set_group_size(size);
  request.set_rank(-1);
  request.set_device(DeviceOfTask(task));
  request.set_incarnation(7);
  return request;
}

std::shared_ptr<TestCall> JoinBy(GroupLeader& leader,
                                 const JoinGroupRequest& request) {
  auto call = std::make_shared<TestCall>();
  leader.Join(request, call);
  return call;
}

TEST(GroupLeader, GroupsOfOneMeetABound) {
  const auto leader = std::make_shared<GroupLeader>(GroupLimits{.groups = 100});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(JoinBy(*leader, JoinOf(i, 1))->answer().ok());
  }
  const size_t bytes = leader->bytes();
  for (int i = 100; i < 10'000; ++i) {
    const Status s = StatusOf(JoinBy(*leader, JoinOf(i, 1))->answer());
    ASSERT_TRUE(absl::IsResourceExhausted(s)) << s;
    EXPECT_NE(s.message().find("keeps 100 groups"), std::string::npos) << s;
  }
  EXPECT_EQ(leader->groups(), 100U);
  EXPECT_EQ(leader->bytes(), bytes);
  // Members of what is there are answered as ever.
  EXPECT_TRUE(JoinBy(*leader, JoinOf(5, 1))->answer().ok());
  leader->Forget(Aborted("a reset"));
  EXPECT_EQ(leader->groups(), 0U);
  EXPECT_EQ(leader->bytes(), 0U);
  EXPECT_TRUE(JoinBy(*leader, JoinOf(200, 1))->answer().ok());
}

TEST(GroupLeader, LongNamesAndAttributesMeetABound) {
  const auto leader =
      std::make_shared<GroupLeader>(GroupLimits{.bytes = 1 << 20});
  int taken = 0;
  for (int i = 0; i < 100; ++i) {
    JoinGroupRequest request = JoinOf(i, 1);
    request.set_device(absl::StrCat("/job:", std::string(50'000, 'a'),
                                    "/replica:0/task:0/device:CPU:0"));
    const Status s = StatusOf(JoinBy(*leader, request)->answer());
    taken += s.ok();
    EXPECT_TRUE(s.ok() || absl::IsResourceExhausted(s)) << s;
  }
  EXPECT_GE(taken, 1);
  EXPECT_LE(taken, 7);
  EXPECT_LE(leader->bytes(), 1U << 20);
  leader->Forget(Aborted("a reset"));
  // One place whose attributes grow with each of its lives.
  tensorflow::CompleteGroupRequest rings;
  rings.set_group_key(1);
  rings.set_group_size(2);
  rings.set_device_type("CPU");
  rings.mutable_device_attributes()->set_name(DeviceOfTask(0));
  std::vector<std::shared_ptr<TestCall>> calls;
  for (int i = 1; i < 100; ++i) {
    rings.mutable_device_attributes()->set_incarnation(i);
    rings.mutable_device_attributes()->set_physical_device_desc(
        std::string(20'000 * i, 'b'));
    calls.push_back(std::make_shared<TestCall>());
    leader->Join(rings, calls.back());
    EXPECT_LE(leader->bytes(), 1U << 20);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(StatusOf(calls.back()->answer())));
  // The calls of earlier lives have ended.
  EXPECT_TRUE(absl::IsAborted(StatusOf(calls.front()->answer())));
  leader->Forget(Aborted("a reset"));
  EXPECT_EQ(leader->bytes(), 0U);
}

TEST(GroupLeader, CallsThatWaitMeetABound) {
  const auto leader =
      std::make_shared<GroupLeader>(GroupLimits{.bytes = 100'000});
  std::vector<std::shared_ptr<TestCall>> calls;
  int waiting = 0;
  for (int i = 0; i < 1'000; ++i) {
    calls.push_back(JoinBy(*leader, JoinOf(1, 1 << 30)));
    waiting += !calls.back()->ended();
  }
  EXPECT_GT(waiting, 50);
  EXPECT_LT(waiting, 100);
  // A group of which all callers go away is none.
  for (const auto& call : calls) call->Cancel();
  EXPECT_EQ(leader->groups(), 0U);
  EXPECT_EQ(leader->bytes(), 0U);
}

TEST(GroupLeader, AGroupThatNobodyElseJoinsEndsWithItsDeadline) {
  ManualLoop loop;
  LocalOptions options;
  options.loop = &loop;
  const auto network = *LocalNetwork::Create(options);
  const auto leader = std::make_shared<GroupLeader>();
  const auto leads = network->Of("w:1"), asks = network->Of("w:2");
  ListenOptions listen;
  listen.address = "w:1";
  listen.methods["/w/Join"] = [leader](std::shared_ptr<ServerCall> call,
                                       const Bytes& bytes) {
    JoinGroupRequest request;
    ASSERT_TRUE(ReadMessage(bytes, &request).ok());
    leader->Join(request, std::move(call));
  };
  std::string error;
  const auto listener = leads->Listen(std::move(listen), &error);
  ASSERT_NE(listener, nullptr) << error;
  const auto channel = asks->Connect("w:1", {});
  CallOptions call;
  call.deadline = loop.Now() + std::chrono::seconds(5);
  std::vector<Status> ends;
  for (int i = 0; i < 50; ++i) {
    channel->Start("/w/Join", WriteMessage(JoinOf(i, 2)), call,
                   [&](const Answer& a) { ends.push_back(StatusOf(a)); });
  }
  loop.RunUntil(loop.Now() + std::chrono::seconds(4));
  EXPECT_EQ(leader->groups(), 50U);
  EXPECT_EQ(ends.size(), 0U);
  loop.RunUntil(loop.Now() + std::chrono::seconds(2));
  EXPECT_EQ(leader->groups(), 0U);
  EXPECT_EQ(leader->bytes(), 0U);
  ASSERT_EQ(ends.size(), 50U);
  for (const Status& s : ends) EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
}

}  // namespace
}  // namespace headrace::distributed
