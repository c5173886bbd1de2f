#include <thread>

#include "base/cancellation.h"
#include "distributed/call_and_wait.h"
#include "distributed/coordination/agent.h"
#include "distributed/coordination/service.h"
#include "distributed/local_transport.h"
#include "distributed/messages.h"
#include "distributed/test_call.h"
#include "distributed/wire/methods.h"
#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

// A service for two tasks, and agents of them.
struct Meeting {
  explicit Meeting(milliseconds silence = milliseconds(10'000)) {
    CoordinationOptions options;
    options.tasks = {{"w", 0}, {"w", 1}};
    options.silence = silence;
    options.lost = [this](const Status& s) {
      MutexLock lock(mutex);
      if (!lost.ok()) again = s;
      lost = s;
    };
    options.channel_of = [this](const TaskId& task) {
      return task.second == 0 ? nullptr : transport->Connect("w:1", {});
    };
    service = std::make_shared<CoordinationService>(std::move(options));
    ListenOptions listen;
    listen.address = "w:1";
    listen.methods = CoordinationService::Methods(service);
    std::string error;
    transport = network->Of("w:1");
    listener = transport->Listen(std::move(listen), &error);
    for (int i = 0; i < 2; ++i) {
      AgentOptions agent;
      agent.task = DeviceName::OfTask("w", i);
      agent.leader = DeviceName::OfTask("w", 0);
      agent.incarnation = 10 + i;
      agent.channel = transport->Connect("w:1", {});
      agent.beat = milliseconds(20);
      agent.silence = milliseconds(200);
      agent.patience = milliseconds(10'000);
      agent.lost = [this](const Status& s) {
        MutexLock lock(mutex);
        told = s;
      };
      agents.push_back(std::make_shared<CoordinationAgent>(std::move(agent)));
    }
  }
  ~Meeting() {
    for (auto& a : agents) a->Stop();
    service->Stop(Cancelled("the test is over"));
  }
  void Start() {
    std::thread other([&] { EXPECT_EQ(agents[1]->Start(), OkStatus()); });
    service->Expect({{"w", 0}, {"w", 1}});
    EXPECT_EQ(agents[0]->Start(), OkStatus());
    other.join();
  }
  Status Await(const Status& of) {
    for (int i = 0; i < 500; ++i) {
      {
        MutexLock lock(mutex);
        if (!of.ok()) return of;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    return OkStatus();
  }

  Mutex mutex;
  Status lost, told;  // at the service, and at an agent
  Status again;       // as the service told tasks, for which it is here, too
  std::shared_ptr<LocalNetwork> network = *LocalNetwork::Create({});
  std::unique_ptr<Transport> transport;
  std::shared_ptr<CoordinationService> service;
  std::unique_ptr<Listener> listener;
  std::vector<std::shared_ptr<CoordinationAgent>> agents;
};

TEST(CoordinationTest, WhoIsSilentIsLost) {
  Meeting m(milliseconds(150));
  m.Start();
  m.agents[1]->Stop();
  EXPECT_TRUE(absl::IsUnavailable(m.Await(m.lost)));
  EXPECT_TRUE(absl::IsUnavailable(m.Await(m.told)));
}

TEST(CoordinationTest, WhoSaysThatItLeavesIsNotMissed) {
  Meeting m(milliseconds(100));
  m.Start();
  m.agents[1]->Stop();
  tensorflow::ShutdownTaskRequest leaves;
  leaves.mutable_source_task()->set_job_name("w");
  leaves.mutable_source_task()->set_task_id(1);
  const auto channel = m.transport->Connect("w:1", {});
  EXPECT_TRUE(CallAndWait(*channel, coordination::kShutdownTask.path,
                          WriteMessage(leaves), {})
                  .ok());
  std::this_thread::sleep_for(milliseconds(300));
  MutexLock lock(m.mutex);
  EXPECT_EQ(m.lost, OkStatus());
  EXPECT_EQ(m.told, OkStatus());
}

TEST(CoordinationTest, AFailureIsToldToAll) {
  Meeting m;
  m.Start();
  m.agents[1]->Stop(Internal("it does not agree"));
  EXPECT_TRUE(absl::IsInternal(m.Await(m.lost)));
  EXPECT_TRUE(absl::IsInternal(m.Await(m.told)));
  EXPECT_TRUE(absl::IsInternal(m.Await(m.again)));
}

TEST(CoordinationTest, ALeaderThatIsGoneIsNoticed) {
  Meeting m;
  m.Start();
  m.listener->Stop(Clock::now());
  EXPECT_TRUE(absl::IsUnavailable(m.Await(m.told)));
}

TEST(CoordinationTest, AnotherLifeOfATaskFailsAll) {
  Meeting m;
  m.Start();
  AgentOptions other;
  other.task = DeviceName::OfTask("w", 1);
  other.leader = DeviceName::OfTask("w", 0);
  other.incarnation = 99;
  other.channel = m.transport->Connect("w:1", {});
  const auto agent = std::make_shared<CoordinationAgent>(std::move(other));
  EXPECT_TRUE(absl::IsAborted(agent->Start()));
  EXPECT_TRUE(absl::IsAborted(m.Await(m.lost)));
  EXPECT_TRUE(absl::IsAborted(m.Await(m.told)));
  agent->Stop();
}

TEST(CoordinationTest, AStrangerIsRefusedAndAStopEndsTheWait) {
  Meeting m;
  AgentOptions other;
  other.task = DeviceName::OfTask("v", 1);
  other.leader = DeviceName::OfTask("w", 0);
  other.channel = m.transport->Connect("w:1", {});
  const auto agent = std::make_shared<CoordinationAgent>(std::move(other));
  EXPECT_TRUE(absl::IsInvalidArgument(agent->Start()));
  agent->Stop();
  CancellationToken token;
  std::thread stops([&] {
    std::this_thread::sleep_for(milliseconds(50));
    token.Cancel();
  });
  const StopScope scope(&token);
  EXPECT_TRUE(absl::IsCancelled(m.agents[0]->Start()));
  stops.join();
}

Status StatusFrom(const std::shared_ptr<TestCall>& call) {
  return StatusOf(call->answer());
}

class KeyValuesTest : public ::testing::Test {
 protected:
  template <typename Request>
  std::shared_ptr<TestCall> Start(const RemoteMethod& method,
                                  const Request& request) {
    return StartCall(methods_, method.path, request.SerializeAsString());
  }
  Status Insert(const std::string& key, const std::string& value,
                bool overwrites = false) {
    tensorflow::InsertKeyValueRequest request;
    request.mutable_kv()->set_key(key);
    request.mutable_kv()->set_value(value);
    request.set_allow_overwrite(overwrites);
    return StatusFrom(Start(coordination::kInsertKeyValue, request));
  }
  std::shared_ptr<TestCall> Get(const std::string& key) {
    tensorflow::GetKeyValueRequest request;
    request.set_key(key);
    return Start(coordination::kGetKeyValue, request);
  }
  StatusOr<std::string> TryGet(const std::string& key) {
    tensorflow::TryGetKeyValueRequest request;
    request.set_key(key);
    return ValueOf(Start(coordination::kTryGetKeyValue, request));
  }
  StatusOr<std::string> Increment(const std::string& key, int64_t by) {
    tensorflow::IncrementKeyValueRequest request;
    request.set_key(key);
    request.set_increment(by);
    return ValueOf(Start(coordination::kIncrementKeyValue, request));
  }
  // The answers of three methods have the same fields.
  StatusOr<std::string> ValueOf(const std::shared_ptr<TestCall>& call) {
    HR_RETURN_IF_ERROR(StatusFrom(call));
    tensorflow::GetKeyValueResponse response;
    HR_RETURN_IF_ERROR(ReadMessage(call->answer().body, &response));
    return response.kv().key() + "=" + response.kv().value();
  }
  std::string List(const std::string& directory) {
    tensorflow::GetKeyValueDirRequest request;
    request.set_directory_key(directory);
    const auto call = Start(coordination::kGetKeyValueDir, request);
    tensorflow::GetKeyValueDirResponse response;
    EXPECT_EQ(ReadMessage(call->answer().body, &response), OkStatus());
    std::string all;
    for (const auto& kv : response.kv())
      all += kv.key() + "=" + kv.value() + " ";
    return all;
  }
  Status Delete(const std::string& key, bool directory) {
    tensorflow::DeleteKeyValueRequest request;
    request.set_key(key);
    request.set_is_directory(directory);
    return StatusFrom(Start(coordination::kDeleteKeyValue, request));
  }

  const KeyValueLimits limits_{
      .bytes = 60, .entries = 4, .waiting = 2, .name = 9};
  const std::shared_ptr<KeyValues> values_ =
      std::make_shared<KeyValues>(limits_);
  const Methods methods_ = KeyValues::Methods(values_);
};

TEST_F(KeyValuesTest, AreToldByNames) {
  EXPECT_EQ(Insert("a/b", "1"), OkStatus());
  EXPECT_EQ(Insert("/a//b/", "2"),
            absl::AlreadyExistsError("key /a//b/ already exists."));
  EXPECT_EQ(Insert("a/b", "3", true), OkStatus());
  EXPECT_EQ(Insert("a/c", "4"), OkStatus());
  EXPECT_EQ(Insert("ab", "5"), OkStatus());
  EXPECT_EQ(*TryGet("/a/b"), "/a/b=3");
  EXPECT_EQ(TryGet("no").status(), NotFound("Config key no not found."));
  EXPECT_EQ(List("a"), "a/b=3 a/c=4 ");
  EXPECT_EQ(List(""), "");
  EXPECT_EQ(Delete("a", false), OkStatus());
  EXPECT_EQ(List("a/"), "a/b=3 a/c=4 ");
  EXPECT_EQ(Delete("a", true), OkStatus());
  EXPECT_EQ(List("a"), "");
  EXPECT_EQ(*TryGet("ab"), "ab=5");
}

TEST_F(KeyValuesTest, Count) {
  EXPECT_EQ(*Increment("n", 3), "n=3");
  EXPECT_EQ(*Increment("n", -5), "n=-2");
  EXPECT_EQ(Insert("t", "hello"), OkStatus());
  EXPECT_EQ(
      Increment("t", 1).status(),
      FailedPrecondition("Failed to parse value \"hello\" as an integer."));
  EXPECT_EQ(*Increment("m", INT64_MIN), "m=-9223372036854775808");
  EXPECT_TRUE(absl::IsFailedPrecondition(Increment("m", -1).status()));
}

TEST_F(KeyValuesTest, AreWaitedFor) {
  const auto first = Get("/late"), gone = Get("late");
  EXPECT_FALSE(first->ended());
  EXPECT_TRUE(absl::IsResourceExhausted(StatusFrom(Get("late"))));
  gone->Cancel();
  const auto second = Get("late/");
  EXPECT_EQ(Insert("late", "L"), OkStatus());
  EXPECT_EQ(*ValueOf(first), "/late=L");
  EXPECT_EQ(*ValueOf(second), "late/=L");
  EXPECT_FALSE(gone->ended());
  const auto never = Get("never");
  values_->Stop(Cancelled("over"));
  EXPECT_EQ(StatusFrom(never), Cancelled("over"));
  EXPECT_EQ(StatusFrom(Get("never")), Cancelled("over"));
}

TEST_F(KeyValuesTest, AreBounded) {
  EXPECT_EQ(Insert("a", std::string(50, 'x')), OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(Insert("b", std::string(20, 'x'))));
  // What takes the place of another one counts in its stead.
  EXPECT_EQ(Insert("a", std::string(59, 'y'), true), OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(Insert("b", "")));
  EXPECT_EQ(Delete("a", false), OkStatus());
  for (const char* key : {"1", "2", "3", "4"}) {
    EXPECT_EQ(Insert(key, ""), OkStatus());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Insert("5", "")));
  EXPECT_EQ(Insert("4", "x", true), OkStatus());
  EXPECT_EQ(Insert("0123456789", ""),
            InvalidArgument("a key of 10 bytes; at most 9 may be"));
  EXPECT_TRUE(absl::IsInvalidArgument(StatusFrom(Get("0123456789"))));
}

TEST(Coordination, TellsStates) {
  CoordinationOptions options;
  options.tasks = {{"w", 0}, {"w", 1}};
  const auto service = std::make_shared<CoordinationService>(options);
  const Methods methods = CoordinationService::Methods(service);
  tensorflow::RegisterTaskRequest registers;
  registers.mutable_source_task()->set_job_name("w");
  registers.set_incarnation(5);
  StartCall(methods, coordination::kRegisterTask.path,
            registers.SerializeAsString());
  tensorflow::GetTaskStateRequest asks;
  for (int i = 0; i < 2; ++i) {
    asks.add_source_task()->set_job_name("w");
    asks.mutable_source_task(i)->set_task_id(i);
  }
  const auto ask = [&] {
    return StartCall(methods, coordination::kGetTaskState.path,
                     asks.SerializeAsString())
        ->answer();
  };
  tensorflow::GetTaskStateResponse told;
  ASSERT_EQ(ReadMessage(ask().body, &told), OkStatus());
  ASSERT_EQ(told.task_state_size(), 2);
  EXPECT_EQ(told.task_state(0).state(), tensorflow::TASKSTATE_CONNECTED);
  EXPECT_EQ(told.task_state(0).incarnation(), 5);
  EXPECT_EQ(told.task_state(1).state(), tensorflow::TASKSTATE_DISCONNECTED);
  service->Stop(Internal("boom"));
  ASSERT_EQ(ReadMessage(ask().body, &told), OkStatus());
  EXPECT_EQ(told.task_state(1).error_message(), "boom");
  asks.mutable_source_task(1)->set_task_id(4);
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(ask())));
  asks.add_source_task();
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(ask())));
}

}  // namespace
}  // namespace headrace::distributed
