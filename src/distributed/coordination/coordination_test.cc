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

// A service for three tasks, whose methods are called without a transport.
class CoordinationCalls : public ::testing::Test {
 protected:
  CoordinationCalls() {
    CoordinationOptions options;
    options.tasks = {{"w", 0}, {"w", 1}, {"w", 2}};
    options.make_loop = [this]() -> StatusOr<std::unique_ptr<EventLoop>> {
      auto loop = std::make_unique<ManualLoop>();
      loop_ = loop.get();
      return StatusOr<std::unique_ptr<EventLoop>>(std::move(loop));
    };
    service_ = std::make_shared<CoordinationService>(options);
    methods_ = CoordinationService::Methods(service_);
  }
  ~CoordinationCalls() override { service_->Stop(Cancelled("over")); }

  static tensorflow::CoordinatedTask W(int i) { return TaskOf({"w", i}); }
  static std::string Name(int i) { return NameOf({"w", i}); }

  template <typename Request>
  std::shared_ptr<TestCall> Start(const RemoteMethod& method,
                                  const Request& request) {
    return StartCall(methods_, method.path, request.SerializeAsString());
  }
  template <typename Response>
  static Response Of(const std::shared_ptr<TestCall>& call) {
    Response response;
    EXPECT_EQ(StatusFrom(call), OkStatus());
    EXPECT_EQ(ReadMessage(call->answer().body, &response), OkStatus());
    return response;
  }

  Status Register(int i, uint64_t incarnation) {
    tensorflow::RegisterTaskRequest request;
    *request.mutable_source_task() = W(i);
    request.set_incarnation(incarnation);
    return StatusFrom(Start(coordination::kRegisterTask, request));
  }
  Status Beat(int i, uint64_t incarnation) {
    tensorflow::HeartbeatRequest request;
    *request.mutable_source_task() = W(i);
    request.set_incarnation(incarnation);
    return StatusFrom(Start(coordination::kHeartbeat, request));
  }
  Status Reset(int i) {
    tensorflow::ResetTaskRequest request;
    *request.mutable_source_task() = W(i);
    return StatusFrom(Start(coordination::kResetTask, request));
  }
  Status Leave(int i) {
    tensorflow::ShutdownTaskRequest request;
    *request.mutable_source_task() = W(i);
    return StatusFrom(Start(coordination::kShutdownTask, request));
  }
  Status Report(int i, const std::string& text) {
    tensorflow::ReportErrorToServiceRequest request;
    *request.mutable_error_origin() = W(i);
    request.set_error_code(13);
    request.set_error_message(text);
    return StatusFrom(Start(coordination::kReportErrorToService, request));
  }
  // "state incarnation text" of each.
  template <typename Response>
  static std::string StatesIn(const Response& told) {
    std::string all;
    for (const auto& state : told.task_state()) {
      const std::string name = CoordinatedTaskState_Name(state.state());
      all += name.substr(name.find('_') + 1) + " " +
             std::to_string(state.incarnation()) + " " + state.error_message() +
             "; ";
    }
    return all;
  }
  std::string States(int tasks) {
    tensorflow::GetTaskStateRequest request;
    for (int i = 0; i < tasks; ++i) *request.add_source_task() = W(i);
    return StatesIn(Of<tensorflow::GetTaskStateResponse>(
        Start(coordination::kGetTaskState, request)));
  }
  std::shared_ptr<TestCall> WatchFrom(int64_t version,
                                      const std::string& job = "w") {
    tensorflow::WatchJobStateRequest request;
    request.set_job_name(job);
    request.set_version_number(version);
    return Start(coordination::kWatchJobState, request);
  }
  std::shared_ptr<TestCall> AskAlive(int i, const std::vector<int>& of) {
    tensorflow::GetAliveTasksRequest request;
    *request.mutable_requesting_task() = W(i);
    for (const int j : of) *request.add_tasks() = W(j);
    return Start(coordination::kGetAliveTasks, request);
  }
  // "index:incarnation" of each.
  static std::string AliveIn(const std::shared_ptr<TestCall>& call) {
    const auto told = Of<tensorflow::GetAliveTasksResponse>(call);
    EXPECT_EQ(told.alive_tasks_size(), told.incarnations_size());
    std::string all;
    for (int i = 0; i < told.alive_tasks_size(); ++i) {
      all += std::to_string(told.alive_tasks(i).task_id()) + ":" +
             std::to_string(told.incarnations(i)) + " ";
    }
    return all;
  }

  struct Meets {
    std::string name = "b";
    int64_t counter = 0;
    std::vector<int> of{1, 2};
    int64_t patience = 1000;
  };
  std::shared_ptr<TestCall> Meet(int i, const Meets& at) {
    tensorflow::BarrierRequest request;
    request.set_barrier_id(at.name);
    request.set_barrier_timeout_in_ms(at.patience);
    request.set_counter(at.counter);
    *request.mutable_source_task() = W(i);
    for (const int j : at.of) *request.add_tasks() = W(j);
    return Start(coordination::kBarrier, request);
  }
  Status Met(const std::shared_ptr<TestCall>& call) {
    EXPECT_TRUE(call->ended());
    return call->ended() ? StatusFrom(call) : OkStatus();
  }
  Status CancelAt(const std::string& name, int i, int64_t counter = 0) {
    tensorflow::CancelBarrierRequest request;
    request.set_barrier_id(name);
    request.set_counter(counter);
    *request.mutable_source_task() = W(i);
    return StatusFrom(Start(coordination::kCancelBarrier, request));
  }

  ManualLoop* loop_ = nullptr;
  std::shared_ptr<CoordinationService> service_;
  Methods methods_;
};

TEST_F(CoordinationCalls, TellStates) {
  EXPECT_EQ(Register(0, 5), OkStatus());
  EXPECT_EQ(States(2), "CONNECTED 5 ; DISCONNECTED 0 ; ");
  EXPECT_EQ(Report(0, "boom"), OkStatus());
  EXPECT_EQ(States(2), "ERROR 5 boom; DISCONNECTED 0 ; ");
  tensorflow::GetTaskStateRequest asks;
  *asks.add_source_task() = W(4);
  EXPECT_TRUE(absl::IsInvalidArgument(
      StatusFrom(Start(coordination::kGetTaskState, asks))));
  for (int i = 0; i < 3; ++i) *asks.add_source_task() = W(0);
  EXPECT_EQ(StatusFrom(Start(coordination::kGetTaskState, asks)),
            InvalidArgument("states of 4 tasks are asked for; the cluster has "
                            "3"));
}

TEST_F(CoordinationCalls, AnErrorLastsUntilItsTaskIsReset) {
  EXPECT_EQ(Register(1, 5), OkStatus());
  EXPECT_EQ(Register(2, 6), OkStatus());
  EXPECT_EQ(
      Report(0, "no"),
      FailedPrecondition("The task is not connected or already has an error."));
  EXPECT_EQ(Report(7, "no"),
            InvalidArgument("Unexpected request from task ", Name(7)));
  EXPECT_EQ(Report(2, std::string(1999, 'x') + std::string(100, '\n')),
            OkStatus());
  const std::string kept = std::string(1999, 'x') + std::string(49, '\n');
  EXPECT_EQ(States(3), "DISCONNECTED 0 ; CONNECTED 5 ; ERROR 6 " + kept + "; ");
  EXPECT_TRUE(absl::IsInternal(Beat(1, 5)));
  EXPECT_TRUE(absl::IsAborted(Beat(2, 6)));
  EXPECT_TRUE(absl::IsAborted(Register(2, 6)));
  EXPECT_EQ(Reset(2), OkStatus());
  EXPECT_EQ(Reset(2),
            FailedPrecondition("The task is already disconnected: ", Name(2)));
  EXPECT_EQ(Reset(9),
            InvalidArgument("Unexpected disconnect request with task_name=",
                            Name(9)));
  EXPECT_EQ(Beat(1, 5), OkStatus());
  // One that was still on its way.
  EXPECT_EQ(Beat(2, 6), OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(Beat(0, 1)));
  EXPECT_EQ(Register(2, 8), OkStatus());
  EXPECT_EQ(Beat(2, 8), OkStatus());
  EXPECT_EQ(States(3), "DISCONNECTED 0 ; CONNECTED 5 ; CONNECTED 8 ; ");
  // Another life of a task is an error of it.
  EXPECT_TRUE(absl::IsAborted(Beat(2, 9)));
  EXPECT_TRUE(absl::IsAborted(Beat(2, 8)));
  service_->Stop(Cancelled("over"));
  EXPECT_EQ(Reset(2), Cancelled("over"));
}

TEST_F(CoordinationCalls, WhoWatchesIsToldOfChanges) {
  EXPECT_EQ(Register(1, 5), OkStatus());
  const auto now = Of<tensorflow::WatchJobStateResponse>(WatchFrom(0));
  EXPECT_EQ(StatesIn(now), "DISCONNECTED 0 ; CONNECTED 5 ; DISCONNECTED 0 ; ");
  const int64_t version = now.version_number();
  const auto next = WatchFrom(version), gone = WatchFrom(version),
             later = WatchFrom(version + 1), other = WatchFrom(version, "v");
  gone->Cancel();
  EXPECT_EQ(Register(1, 5), OkStatus());  // no change
  EXPECT_FALSE(next->ended());
  EXPECT_EQ(Report(1, "boom"), OkStatus());
  ASSERT_TRUE(next->ended() && other->ended());
  EXPECT_FALSE(gone->ended() || later->ended());
  const auto told = Of<tensorflow::WatchJobStateResponse>(next);
  EXPECT_EQ(StatesIn(told), "DISCONNECTED 0 ; ERROR 5 boom; DISCONNECTED 0 ; ");
  EXPECT_EQ(told.version_number(), version + 1);
  EXPECT_EQ(told.task_state(1).error_payload().source_task().task_id(), 1);
  EXPECT_EQ(Of<tensorflow::WatchJobStateResponse>(other).task_state_size(), 0);
  EXPECT_EQ(Reset(1), OkStatus());
  ASSERT_TRUE(later->ended());
  const auto never = WatchFrom(INT64_MAX);
  service_->Stop(Cancelled("over"));
  EXPECT_EQ(StatusFrom(never), Cancelled("over"));
  EXPECT_EQ(StatusFrom(WatchFrom(0)), Cancelled("over"));
}

TEST_F(CoordinationCalls, TheLivingAreThoseThatAsk) {
  EXPECT_EQ(Register(1, 5), OkStatus());
  EXPECT_EQ(StatusFrom(AskAlive(1, {2})),
            InvalidArgument("Requesting task ", Name(1),
                            " is not one of the tasks specified in a "
                            "GetAliveTasks request."));
  EXPECT_EQ(AliveIn(AskAlive(1, {1, 2, 2, 7})), "1:5 ");
  EXPECT_EQ(AliveIn(AskAlive(7, {7})), "");
  EXPECT_EQ(Register(2, 6), OkStatus());
  const auto first = AskAlive(1, {1, 2});
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(AliveIn(AskAlive(2, {2})), "2:6 ");
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(AliveIn(AskAlive(2, {2, 1})), "1:5 2:6 ");
  EXPECT_EQ(AliveIn(first), "1:5 2:6 ");
  // Who went away meanwhile has to ask again.
  const auto gone = AskAlive(1, {1, 2});
  gone->Cancel();
  const auto second = AskAlive(2, {1, 2});
  EXPECT_FALSE(second->ended());
  // Nobody waits for the dead.
  EXPECT_EQ(Report(1, "boom"), OkStatus());
  ASSERT_TRUE(second->ended());
  EXPECT_EQ(AliveIn(second), "2:6 ");
  EXPECT_EQ(Reset(1), OkStatus());
  EXPECT_EQ(Register(1, 7), OkStatus());
  const auto third = AskAlive(1, {1, 2});
  EXPECT_EQ(Leave(2), OkStatus());
  ASSERT_TRUE(third->ended());
  EXPECT_EQ(AliveIn(third), "1:7 ");
  EXPECT_EQ(Register(2, 8), OkStatus());
  const auto never = AskAlive(1, {1, 2});
  service_->Stop(Cancelled("over"));
  EXPECT_EQ(StatusFrom(never), Cancelled("over"));
}

TEST_F(CoordinationCalls, SetsOfTheLivingAreBounded) {
  EXPECT_EQ(Register(0, 5), OkStatus());
  EXPECT_EQ(Register(1, 6), OkStatus());
  std::vector<std::shared_ptr<TestCall>> held;
  for (int i = 0; i < 4096; ++i) {
    held.push_back(AskAlive(1, {0, 1}));
    ASSERT_FALSE(held.back()->ended());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(StatusFrom(AskAlive(1, {0, 1}))));
  held[7]->Cancel();
  held.push_back(AskAlive(0, {0, 1}));
  EXPECT_EQ(AliveIn(held.back()), "0:5 1:6 ");
  EXPECT_TRUE(held[0]->ended());
}

TEST_F(CoordinationCalls, TasksMeet) {
  const auto first = Meet(1, {});
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(Met(Meet(2, {.of = {2, 1}})), OkStatus());
  EXPECT_EQ(Met(first), OkStatus());
  // Who asks again is told again; the next time has the next number.
  EXPECT_EQ(Met(Meet(1, {})), OkStatus());
  const auto second = Meet(1, {.counter = 1});
  EXPECT_FALSE(second->ended());
  EXPECT_EQ(Met(Meet(2, {.counter = 1})), OkStatus());
  EXPECT_EQ(Of<tensorflow::BarrierResponse>(second).counter(), 1);
  EXPECT_EQ(
      Met(Meet(1, {})),
      Internal("Barrier (b::0) is invoked by the task, but the service thinks "
               "it is the 1-th instance. The service or task probably "
               "restarted, check the earlier logs to debug further. Usually, a "
               "restart on the stale tasks will resolve the issue."));
  EXPECT_EQ(
      Met(Meet(1, {.counter = 5})),
      Internal("Barrier (b::5) is invoked by the task, but the service thinks "
               "it is the 1-th instance. One task is probably way too quick / "
               "slow in its execution. For example, one task started a "
               "barrier early, which timed out, and started a second barrier "
               "before the late task even joined once."));
  EXPECT_TRUE(absl::IsInternal(Met(Meet(1, {.name = "new", .counter = 3}))));
  // All of the cluster, where none are named.
  const auto zero = Meet(0, {.name = "all", .of = {}}),
             one = Meet(1, {.name = "all", .of = {}});
  EXPECT_FALSE(zero->ended() || one->ended());
  EXPECT_EQ(Met(Meet(2, {.name = "all", .of = {}})), OkStatus());
  EXPECT_EQ(Met(zero), OkStatus());
  // A caller that is gone has come; of one that calls twice the last counts.
  const auto gone = Meet(1, {.counter = 2});
  gone->Cancel();
  EXPECT_EQ(Met(Meet(2, {.counter = 2})), OkStatus());
  const auto old = Meet(1, {.counter = 3}), young = Meet(1, {.counter = 3});
  EXPECT_EQ(Met(old), Cancelled("Cancelled because there's a more recent "
                                "barrier call for b::3 from the same task."));
  EXPECT_FALSE(young->ended());
  EXPECT_EQ(Met(Meet(2, {.counter = 3})), OkStatus());
  EXPECT_EQ(Met(young), OkStatus());
}

TEST_F(CoordinationCalls, BarriersHaveDeadlines) {
  const auto first = Meet(1, {.of = {}, .patience = 50});
  const Clock::time_point began = loop_->Now();
  loop_->RunUntil(began + milliseconds(49));
  EXPECT_FALSE(first->ended());
  loop_->RunUntil(began + milliseconds(50));
  const std::string text =
      "Barrier timed out. Id: b::0. This usually happens because a task "
      "triggered the barrier too early or too slowly. Please look at the task "
      "logs (both timed out and first task) to debug further.\n# of tasks "
      "that reached the barrier: 1/3.\nThe first task at the barrier: ";
  EXPECT_EQ(Met(first),
            DeadlineExceeded(text, Name(1), ". Some timed out task names:\n",
                             Name(0), "\n", Name(2), "\n"));
  EXPECT_EQ(Met(Meet(2, {.of = {}})), Met(first));
  EXPECT_NE(first->answer().details.find("tensorflow.BarrierError"),
            std::string::npos);
  // One that was met is not late, though its time comes.
  const auto second = Meet(1, {.name = "c", .patience = 50});
  EXPECT_EQ(Met(Meet(2, {.name = "c"})), OkStatus());
  loop_->RunUntil(began + milliseconds(500));
  EXPECT_EQ(Met(Meet(1, {.name = "c"})), OkStatus());
  for (const int64_t patience : {int64_t{0}, INT64_MIN}) {
    const auto at =
        Meet(1, {.name = "d" + std::to_string(patience), .patience = patience});
    loop_->RunUntil(loop_->Now());
    EXPECT_TRUE(absl::IsDeadlineExceeded(Met(at)));
  }
  const auto longest = Meet(1, {.name = "e", .patience = INT64_MAX});
  loop_->RunUntil(loop_->Now() + std::chrono::hours(24 * 364));
  EXPECT_FALSE(longest->ended());
  loop_->RunUntil(loop_->Now() + std::chrono::hours(24));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Met(longest)));
}

TEST_F(CoordinationCalls, WhoDoesNotAgreeSpoilsTheBarrier) {
  const auto conflict = [](const std::string& at) {
    return InvalidArgument(
        "Conflicting tasks specified by different processes for the same "
        "barrier: ",
        at,
        ". Check that the callers are invoking the barrier with the same "
        "arguments.");
  };
  const auto first = Meet(1, {});
  EXPECT_EQ(Met(Meet(2, {.of = {0, 1, 2}})), conflict("b::0"));
  EXPECT_EQ(Met(first), conflict("b::0"));
  EXPECT_EQ(Met(Meet(1, {})), conflict("b::0"));
  EXPECT_EQ(Met(Meet(1, {.name = "twice", .of = {1, 1}})),
            conflict("twice::0"));
  EXPECT_EQ(Met(Meet(1, {.name = "four", .of = {0, 1, 2, 1}})),
            conflict("four::0"));
  const auto second = Meet(1, {.name = "c"});
  const Status outside = InvalidArgument("A non-participating task (", Name(0),
                                         ") called the barrier: c::0");
  EXPECT_EQ(Met(Meet(0, {.name = "c"})), outside);
  EXPECT_EQ(Met(second), outside);
  const auto third = Meet(1, {.name = "d"});
  EXPECT_TRUE(absl::IsInternal(Met(Meet(2, {.name = "d", .counter = 1}))));
  EXPECT_TRUE(absl::IsInternal(Met(third)));
  // Not so a stranger.
  const auto fourth = Meet(1, {.name = "e"});
  const Status stranger =
      InvalidArgument("Unexpected task (", Name(9),
                      ") that is not in the cluster called the barrier. "
                      "Barrier Id: e::0");
  EXPECT_EQ(Met(Meet(9, {.name = "e"})), stranger);
  EXPECT_EQ(Met(Meet(2, {.name = "e", .of = {1, 2, 9}})), stranger);
  EXPECT_FALSE(fourth->ended());
  EXPECT_EQ(Met(Meet(2, {.name = "e"})), OkStatus());
}

TEST_F(CoordinationCalls, BarriersAreCancelled) {
  const auto first = Meet(1, {});
  EXPECT_EQ(CancelAt("b", 2, 4),
            FailedPrecondition("Barrier (b::4) is cancelled by task, but the "
                               "service thinks it is the 0-th instance. This "
                               "is likely due to a restart in the task or "
                               "service."));
  EXPECT_TRUE(absl::IsInvalidArgument(CancelAt("b", 9)));
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(CancelAt("b", 2), OkStatus());
  EXPECT_EQ(Met(first),
            Cancelled("Barrier (b::0) is cancelled by task: ", Name(2)));
  EXPECT_EQ(Met(Meet(2, {})), Met(first));
  EXPECT_EQ(CancelAt("b", 2),
            FailedPrecondition(
                "Barrier (b::0) has already been passed with status code: 1"));
  const auto again = Meet(1, {.counter = 1});
  EXPECT_EQ(Met(Meet(2, {.counter = 1})), OkStatus());
  // Before anybody came.
  EXPECT_EQ(CancelAt("c", 1), OkStatus());
  EXPECT_EQ(Met(Meet(2, {.name = "c"})),
            Cancelled("Barrier (c::0) is cancelled by task: ", Name(1)));
}

TEST_F(CoordinationCalls, ADeathEndsBarriersAndSaysWhose) {
  EXPECT_EQ(Register(1, 5), OkStatus());
  EXPECT_EQ(Register(2, 6), OkStatus());
  const auto at = Meet(1, {}), other = Meet(1, {.name = "o", .of = {0, 1}});
  EXPECT_EQ(Report(2, "boom"), OkStatus());
  const std::string error =
      "INTERNAL: boom [type.googleapis.com/tensorflow.CoordinationServiceError="
      "'\\x18\\x01\\\"\\x05\\n\\x01w\\x10\\x02']";
  EXPECT_EQ(Met(at), Internal("Barrier failed because: task is set to ERROR: ",
                              error, ". Barrier Id: b::0, Task: ", Name(2)));
  EXPECT_FALSE(other->ended());
  EXPECT_EQ(Met(Meet(1, {.name = "late"})),
            Internal("Task (", Name(2),
                     ") is already in error before the barrier was called. "
                     "Barrier Id: late::0 Task error: ",
                     error));
  EXPECT_EQ(Reset(2), OkStatus());
  EXPECT_EQ(Register(2, 7), OkStatus());
  const auto left = Meet(1, {.counter = 1});
  EXPECT_EQ(Leave(2), OkStatus());
  EXPECT_EQ(Met(left), Internal("Barrier failed because: task disconnected. "
                                "Barrier Id: b::1, Task: ",
                                Name(2)));
  // Who is not there yet is waited for.
  const auto waits = Meet(1, {.counter = 2});
  EXPECT_FALSE(waits->ended());
  EXPECT_EQ(Register(2, 8), OkStatus());
  EXPECT_EQ(Met(Meet(2, {.counter = 2})), OkStatus());
  service_->Stop(Cancelled("over"));
  EXPECT_EQ(Met(other), Cancelled("over"));
  EXPECT_EQ(Met(Meet(1, {.name = "after"})), Cancelled("over"));
}

TEST(BarriersTest, AreBounded) {
  const auto make = [](const BarrierLimits& limits) {
    return std::make_shared<Barriers>(
        std::set<TaskId>{{"w", 0}, {"w", 1}},
        [] {
          return StatusOr<std::unique_ptr<EventLoop>>(
              std::make_unique<ManualLoop>());
        },
        limits);
  };
  auto barriers = make({.barriers = 2, .name = 4});
  Methods methods = Barriers::Methods(barriers);
  const auto meet = [&](const std::string& name, int i) {
    tensorflow::BarrierRequest request;
    request.set_barrier_id(name);
    request.set_barrier_timeout_in_ms(1000);
    *request.mutable_source_task() = TaskOf({"w", i});
    return StartCall(methods, coordination::kBarrier.path,
                     request.SerializeAsString());
  };
  EXPECT_EQ(StatusFrom(meet("12345", 0)),
            InvalidArgument("a barrier's name of 5 bytes; at most 4 may be"));
  const auto first = meet("1", 0), second = meet("2", 0);
  EXPECT_TRUE(absl::IsResourceExhausted(StatusFrom(meet("3", 0))));
  EXPECT_EQ(StatusFrom(meet("1", 1)), OkStatus());
  EXPECT_EQ(StatusFrom(first), OkStatus());
  // The place of one that is over.
  const auto third = meet("3", 0);
  EXPECT_FALSE(third->ended() || second->ended());
  barriers->Stop(Cancelled("over"));
  EXPECT_EQ(StatusFrom(third), Cancelled("over"));
  barriers = make({.waiting = 1});
  methods = Barriers::Methods(barriers);
  const auto fourth = meet("4", 0);
  EXPECT_TRUE(absl::IsResourceExhausted(StatusFrom(meet("5", 0))));
  // Who is gone takes no place.
  fourth->Cancel();
  EXPECT_FALSE(meet("5", 0)->ended());
  barriers->Stop(Cancelled("over"));
}

}  // namespace
}  // namespace headrace::distributed
