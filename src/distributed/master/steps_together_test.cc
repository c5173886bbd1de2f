// Steps of one call, by a master's methods.
#include "distributed/master/steps_together.h"

#include <thread>

#include "distributed/call_and_wait.h"
#include "distributed/local_transport.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/task/server.h"
#include "distributed/wire/methods.h"
#include "graph/builder.h"
#include "graph/export.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::microseconds kWithin{1'000'000};

// A worker alone, and a session over a graph with a queue of one element and a
// variable.
class StepsTogetherTest : public testing::Test {
 protected:
  void SetUp() override {
    network_ = *LocalNetwork::Create({});
    transport_ = network_->Of("worker:1");
    tensorflow::ServerDef def;
    auto* job = def.mutable_cluster()->add_job();
    job->set_name("worker");
    (*job->mutable_tasks())[0] = "worker:1";
    def.set_job_name("worker");
    ServerOptions options;
    options.transport = transport_.get();
    auto made = Server::Make(def, options);
    ASSERT_TRUE(made.ok()) << made.status();
    server_ = *std::move(made);
    server_->Start();
    channel_ = Dialling(*transport_, {}, "a client", false)("worker:1");

    const Edge q = Add("q", "FIFOQueueV2", {},
                       {{"component_types", std::vector<DType>{DType::kFloat}},
                        {"shapes", std::vector<Shape>{Shape()}},
                        {"capacity", int64_t{1}},
                        {"shared_name", "q"}});
    const Edge one =
        Add("one", "Const", {},
            {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(1)}});
    Add("put", "QueueEnqueueV2", {q, one}, {});
    Add("taken", "QueueDequeueV2", {q},
        {{"component_types", std::vector<DType>{DType::kFloat}}});
    const Edge v = Add(
        "v", "VarHandleOp", {},
        {{"dtype", DType::kFloat}, {"shape", Shape()}, {"shared_name", "v"}});
    Add("init", "AssignVariableOp", {v, one}, {});
    Add("add", "AssignAddVariableOp", {v, one}, {});
    Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}});
    session_ = MakeSession();
    ASSERT_EQ(End(*Start({Step({}, {"init"})})).size(), 1u);
  }

  Edge Add(const char* name, const char* op, std::vector<Edge> in,
           const AttrMap& attrs) {
    std::vector<DType> types;
    for (const Edge& e : in) types.push_back(e.node->output_type(e.index));
    auto resolved = ResolveOp(*FindOp(op), types, attrs);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    auto node = graph_.AddNode(name, *resolved, in, {});
    EXPECT_TRUE(node.ok()) << node.status();
    return {*node, 0};
  }

  std::string MakeSession() {
    tensorflow::CreateSessionRequest request;
    EXPECT_EQ(ExportGraph(graph_, {}, request.mutable_graph_def()), OkStatus());
    tensorflow::CreateSessionResponse made;
    CallOptions options;
    options.deadline = Clock::now() + kLong;
    EXPECT_EQ(CallAndWait(*channel_, master::kCreateSession.path, request,
                          &made, options),
              OkStatus());
    return made.session_handle();
  }

  static StepRequest Step(std::vector<std::string> fetches,
                          std::vector<std::string> targets) {
    StepRequest step;
    step.fetches = std::move(fetches);
    step.targets = std::move(targets);
    return step;
  }
  std::unique_ptr<StepsTogether> Start(const std::vector<StepRequest>& steps) {
    auto started = StepsTogether::Start(channel_, session_, steps, kWithin);
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  static std::vector<StepResult> Taken(StepsTogether& steps) {
    auto taken = steps.Take();
    EXPECT_TRUE(taken.ok()) << taken.status();
    return *std::move(taken);
  }
  // What all gave.
  static std::vector<StepResult> End(StepsTogether& steps) {
    const auto ended = steps.Wait(kLong);
    EXPECT_TRUE(ended.ok() && *ended) << ended.status();
    EXPECT_EQ(steps.end(), OkStatus());
    return Taken(steps);
  }
  float Value() {
    const auto read = End(*Start({Step({"read:0"}, {})}));
    return read.at(0).fetched.at(0).scalar<float>();
  }
  Status Ask(const RunStepsRequest& request) {
    RunStepsResponse response;
    CallOptions options;
    options.deadline = Clock::now() + kLong;
    options.parts_alone = true;
    options.on_part = [](const Bytes&, const auto& next) { next(); };
    return CallAndWait(*channel_, master::kRunSteps.path, request, &response,
                       options);
  }

  std::shared_ptr<LocalNetwork> network_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<Channel> channel_;
  Graph graph_;
  std::string session_;
};

TEST_F(StepsTogetherTest, OneBehindTheOther) {
  std::vector<StepRequest> steps;
  for (int i = 0; i < 20; ++i) {
    steps.push_back(Step({}, {"add"}));
    steps.push_back(Step({"read:0", "one:0"}, {}));
  }
  const std::vector<StepResult> got = End(*Start(steps));
  ASSERT_EQ(got.size(), 40u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(got[2 * i].status, OkStatus());
    EXPECT_EQ(got[2 * i].fetched.size(), 0u);
    const auto& read = got[2 * i + 1].fetched;
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].scalar<float>(), static_cast<float>(i + 2));
    EXPECT_EQ(read[1].scalar<float>(), 1);
  }
}

TEST_F(StepsTogetherTest, BehindAnErrorNoneIsBegun) {
  const auto steps =
      Start({Step({}, {"add"}), Step({"none:0"}, {}), Step({}, {"add"})});
  const std::vector<StepResult> got = End(*steps);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].status, OkStatus());
  EXPECT_TRUE(absl::IsNotFound(got[1].status)) << got[1].status;
  EXPECT_EQ(Value(), 2);
}

// What is behind a step that waits can be had back, and then be what it waits
// for.
TEST_F(StepsTogetherTest, GivenBack) {
  const auto steps = Start(
      {Step({}, {"add"}), Step({"taken:0"}, {}), Step({}, {"put", "add"})});
  std::vector<StepResult> got;
  while (got.empty()) {
    ASSERT_FALSE(*steps->Wait(milliseconds(5)));
    got = Taken(*steps);  // though the next one has not ended
  }
  EXPECT_EQ(got.size(), 1u);
  std::optional<size_t> begun;
  do {
    const auto given = steps->GiveBack();
    ASSERT_TRUE(given.ok()) << given.status();
    begun = *given;
  } while (begun == 1u);  // between the two
  EXPECT_EQ(begun, 2u);
  ASSERT_EQ(End(*Start({Step({}, {"put", "add"})})).size(), 1u);
  got = End(*steps);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].fetched.at(0).scalar<float>(), 1);
  EXPECT_EQ(Value(), 3);
  EXPECT_EQ(*steps->GiveBack(), std::nullopt);  // there is no such call
}

TEST_F(StepsTogetherTest, LettingGoEndsThem) {
  for (const bool stops : {false, true}) {
    auto steps = Start({Step({"taken:0"}, {}), Step({}, {"add"})});
    EXPECT_FALSE(*steps->Wait(milliseconds(30)));
    if (stops) {
      CancellationToken token;
      token.Cancel();
      const StopScope stop(&token);
      EXPECT_TRUE(absl::IsCancelled(steps->Wait(kLong).status()));
    }
  }
  // Who waited goes: the element is for who comes later.
  for (int i = 0; server_->worker()->num_steps() > 0; ++i) {
    ASSERT_LT(i, 60'000);
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_EQ(End(*Start({Step({}, {"put"})})).size(), 1u);
  const auto taken = End(*Start({Step({"taken:0"}, {})}));
  EXPECT_EQ(taken.at(0).fetched.at(0).scalar<float>(), 1);
  EXPECT_EQ(Value(), 1);
}

TEST_F(StepsTogetherTest, AStoppedServerEndsThem) {
  const auto steps = Start({Step({}, {"add"}), Step({"taken:0"}, {})});
  std::vector<StepResult> got;
  for (int i = 0; got.empty() && i < 60'000; ++i) {
    ASSERT_FALSE(*steps->Wait(milliseconds(1)));
    got = Taken(*steps);
  }
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].status, OkStatus());
  server_->Stop();
  ASSERT_TRUE(*steps->Wait(kLong));
  got = Taken(*steps);
  const Status end = got.empty() ? steps->end() : got[0].status;
  EXPECT_FALSE(end.ok());
}

// Steps like some that ran hold no thread while they wait; what they wait for
// and what ends them is the same.
TEST_F(StepsTogetherTest, WithoutAThread) {
  ASSERT_EQ(End(*Start({Step({}, {"put"}), Step({"taken:0"}, {})})).size(), 2u);
  const auto steps = Start({Step({"taken:0"}, {}), Step({}, {"add"})});
  EXPECT_FALSE(*steps->Wait(milliseconds(30)));
  ASSERT_EQ(End(*Start({Step({}, {"put"})})).size(), 1u);
  const std::vector<StepResult> got = End(*steps);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].fetched.at(0).scalar<float>(), 1);
  EXPECT_EQ(Value(), 2);
}

// None is amid the one before it, which would be as many calls on a stack.
TEST_F(StepsTogetherTest, AsManyAsMayCome) {
  constexpr int kMany = 20'000;
  int ended = 1;
  while (ended < kMany) {
    const auto got =
        End(*Start(std::vector<StepRequest>(kMany - ended, Step({}, {"add"}))));
    for (const StepResult& r : got) ASSERT_EQ(r.status, OkStatus());
    ended += static_cast<int>(got.size());  // less than all in a second
  }
  EXPECT_EQ(Value(), kMany);
}

TEST_F(StepsTogetherTest, AClosedSessionEndsThem) {
  ASSERT_EQ(End(*Start({Step({}, {"put"}), Step({"taken:0"}, {})})).size(), 2u);
  const auto steps = Start({Step({"taken:0"}, {}), Step({}, {"add"})});
  EXPECT_FALSE(*steps->Wait(milliseconds(30)));
  tensorflow::CloseSessionRequest request;
  request.set_session_handle(session_);
  tensorflow::CloseSessionResponse closed;
  CallOptions options;
  options.deadline = Clock::now() + kLong;
  ASSERT_EQ(CallAndWait(*channel_, absl::StrCat(kMasterService, "CloseSession"),
                        request, &closed, options),
            OkStatus());
  ASSERT_TRUE(*steps->Wait(kLong));
  const std::vector<StepResult> got = Taken(*steps);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_TRUE(absl::IsCancelled(got[0].status)) << got[0].status;
}

TEST_F(StepsTogetherTest, WhatNoSuchCallIs) {
  RunStepsRequest request;
  request.set_session_handle(session_);
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(request)));  // no number, no step
  request.set_request_id(NewRequestId());
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(request)));
  request.add_step()->add_target("add");
  request.set_begin_within_us(INT64_MIN);
  EXPECT_EQ(Ask(request), OkStatus());
  EXPECT_TRUE(absl::IsAborted(Ask(request)));  // the number came before
  request.set_request_id(NewRequestId());
  request.add_step()->set_partial_run_handle("some");
  EXPECT_TRUE(absl::IsInvalidArgument(Ask(request)));
  request.mutable_step()->RemoveLast();
  request.set_session_handle("none");
  EXPECT_TRUE(absl::IsAborted(Ask(request)));
  for (const RemoteMethod& m : {master::kRunSteps, master::kGiveBackSteps}) {
    const Answer answer = CallAndWait(*channel_, m.path, Bytes("\xff"), {});
    EXPECT_TRUE(absl::IsInternal(StatusOf(answer))) << answer.message;
  }
}

}  // namespace
}  // namespace headrace::distributed
