#include <thread>

#include "base/cancellation.h"
#include "distributed/call_and_wait.h"
#include "distributed/coordination/agent.h"
#include "distributed/coordination/service.h"
#include "distributed/local_transport.h"
#include "distributed/messages.h"
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

}  // namespace
}  // namespace headrace::distributed
