// Graphs on two tasks of one process, by sessions of one of them.
#include <atomic>
#include <thread>

#include "distributed/local_transport.h"
#include "distributed/messages.h"
#include "distributed/task/client.h"
#include "distributed/task/server.h"
#include "graph/builder.h"
#include "gtest/gtest.h"
#include "op/registry.h"

namespace headrace::distributed {
namespace {

constexpr char kPsTask[] = "/job:ps/task:0";
constexpr char kWorkerTask[] = "/job:worker/task:0";

// A parameter server and a worker.
class TwoTasks : public testing::Test {
 protected:
  void SetUp() override {
    LocalOptions options;
    // Shared: the network's thread may be behind the end of the test.
    options.travel = [sent = sent_by_worker_](const std::string& from,
                                              const std::string&, size_t) {
      if (from == "worker:1") ++*sent;
      return std::optional<Clock::duration>(Clock::duration::zero());
    };
    network_ = *LocalNetwork::Create(std::move(options));
    ps_ = Start("ps");
    worker_ = Start("worker");
  }

  std::unique_ptr<Server> Start(const std::string& job) {
    tensorflow::ServerDef def;
    for (const char* name : {"ps", "worker"}) {
      auto* j = def.mutable_cluster()->add_job();
      j->set_name(name);
      (*j->mutable_tasks())[0] = absl::StrCat(name, ":1");
    }
    def.set_job_name(job);
    transports_.push_back(network_->Of(absl::StrCat(job, ":1")));
    ServerOptions options;
    options.transport = transports_.back().get();
    auto made = Server::Make(def, options);
    EXPECT_TRUE(made.ok()) << made.status();
    (*made)->Start();
    return *std::move(made);
  }

  std::unique_ptr<ClientSession> Session(const Server& at,
                                         tensorflow::ConfigProto config = {}) {
    auto* transport = transports_.back().get();
    auto stub = MasterStub::Of(at.target(),
                               Dialling(*transport, {}, "a client", false));
    EXPECT_TRUE(stub.ok()) << stub.status();
    return std::make_unique<ClientSession>(*std::move(stub), graph_, config,
                                           at.target());
  }

  Edge Add(const char* name, const char* op, std::vector<Edge> in,
           const AttrMap& attrs, const char* device,
           std::vector<Node*> after = {}) {
    std::vector<DType> types;
    for (const Edge& e : in) types.push_back(e.node->output_type(e.index));
    auto resolved = ResolveOp(*FindOp(op), types, attrs);
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    auto node = graph_->AddNode(name, *resolved, in, after);
    EXPECT_TRUE(node.ok()) << node.status();
    (*node)->set_device(device);
    return {*node, 0};
  }
  Edge Constant(const char* name, float x, const char* device) {
    return Add(name, "Const", {},
               {{"dtype", DType::kFloat}, {"value", Tensor::Scalar<float>(x)}},
               device);
  }
  // A variable of that name on the parameter server, what makes it 10, and what
  // it holds.
  void AddVariable() {
    Edge v = Add(
        "v", "VarHandleOp", {},
        {{"dtype", DType::kFloat}, {"shape", Shape()}, {"shared_name", "v"}},
        kPsTask);
    Add("init", "AssignVariableOp", {v, Constant("ten", 10, kWorkerTask)}, {},
        "");
    Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}}, "");
    Add("add", "AssignAddVariableOp", {v, Constant("one", 1, kWorkerTask)}, {},
        "");
    Add("twice", "Mul",
        {Edge{graph_->FindNode("read"), 0}, Constant("two", 2, kWorkerTask)},
        {}, kWorkerTask);
  }

  static StatusOr<std::vector<Tensor>> Run(
      ClientSession& s, std::vector<std::string> fetches,
      std::vector<std::string> targets,
      std::vector<std::pair<std::string, Tensor>> feeds = {}) {
    StepRequest request;
    request.feeds = std::move(feeds);
    request.fetches = std::move(fetches);
    request.targets = std::move(targets);
    std::vector<Tensor> out;
    HR_RETURN_IF_ERROR(s.Run(std::move(request), &out, nullptr));
    return out;
  }

  const std::shared_ptr<std::atomic<int>> sent_by_worker_ =  // messages
      std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<LocalNetwork> network_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::unique_ptr<Server> ps_, worker_;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

TEST_F(TwoTasks, VariablesLiveOnTheirTask) {
  AddVariable();
  auto session = Session(*worker_);
  auto out = Run(*session, {"twice:0"}, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(out.status())) << out.status();
  ASSERT_TRUE(Run(*session, {}, {"init"}).ok());
  for (const float want : {20, 22, 24}) {
    out = Run(*session, {"twice:0"}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), want);
    EXPECT_EQ(Run(*session, {}, {"add"}).status(), OkStatus());
  }
  // Another session, of the other task's master, sees the same variable; what
  // the graph gains since is sent.
  auto other = Session(*ps_);
  Add("half", "Neg", {Edge{graph_->FindNode("twice"), 0}}, {}, kPsTask);
  for (auto* s : {session.get(), other.get()}) {
    out = Run(*s, {"half:0", "read:0"}, {});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), -26);
    EXPECT_EQ((*out)[1].scalar<float>(), 13);
  }
  EXPECT_EQ(session->Close(), OkStatus());
  EXPECT_TRUE(absl::IsCancelled(Run(*session, {"read:0"}, {}).status()));
  EXPECT_TRUE(Run(*other, {"read:0"}, {}).ok());
}

// Larger than what comes in one message.
TEST_F(TwoTasks, LargeTensorsComeInParts) {
  Tensor many = *Tensor::Allocate(DType::kFloat, Shape({700'001}));
  for (int i = 0; i < 700'001; ++i) many.data<float>()[i] = i % 1000;
  Edge c = Add("many", "Const", {}, {{"dtype", DType::kFloat}, {"value", many}},
               kPsTask);
  Edge twice = Add("twice", "AddV2", {c, c}, {}, kPsTask);
  Edge there = Add("there", "Neg", {twice}, {}, kWorkerTask);
  Add("back", "Neg", {there}, {}, kPsTask);
  auto session = Session(*worker_);
  auto out = Run(*session, {"back:0", "there:0"}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ((*out)[0].num_elements(), 700'001);
  for (const int i : {0, 999, 350'000, 700'000}) {
    EXPECT_EQ((*out)[0].data<float>()[i], 2 * (i % 1000));
    EXPECT_EQ((*out)[1].data<float>()[i], -2 * (i % 1000));
  }
}

// What was large is asked for in parts at once; it may be small then, or dead.
TEST_F(TwoTasks, LargeTensorsThatBecomeSmall) {
  Edge n = Add("n", "Placeholder", {}, {{"dtype", DType::kInt32}}, kPsTask);
  Edge many =
      Add("many", "Fill", {n, Constant("one", 1, kPsTask)}, {}, kPsTask);
  Add("there", "Neg", {many}, {}, kWorkerTask);
  auto session = Session(*worker_);
  for (const int size : {600'000, 700'000, 5, 0, 600'000, 3}) {
    auto out = Run(*session, {"there:0"}, {},
                   {{"n:0", Tensor::Vector<int32_t>({size})}});
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ((*out)[0].num_elements(), size);
    if (size > 0) {
      EXPECT_EQ((*out)[0].data<float>()[size - 1], -1);
    }
  }
}

// Steps of two sessions at the same time, and a stop of one.
// What a step takes from one task is asked for once: small and large tensors,
// strings, and what is made after others were sent.
TEST_F(TwoTasks, ManyEdgesTakeFewCalls) {
  constexpr int kEdges = 100;
  const Shape large{1 << 19};
  std::vector<Edge> here;
  const auto add = [&](int i, Tensor value) {
    const std::string n = absl::StrCat("v", i);
    const DType dtype = value.dtype();
    Edge e = Add(n.c_str(), "Const", {},
                 {{"dtype", dtype}, {"value", std::move(value)}}, kPsTask);
    if (dtype == DType::kFloat) {
      e = Add((n + "n").c_str(), "Neg", {e}, {}, kPsTask);
    }
    here.push_back(Add((n + "h").c_str(), "Identity", {e}, {}, kWorkerTask));
  };
  for (int i = 0; i < kEdges; ++i) {
    Tensor value = *Tensor::Allocate(DType::kFloat, Shape{i + 1});
    for (int k = 0; k <= i; ++k) value.data<float>()[k] = i + k * 0.5f;
    add(i, value);
  }
  Tensor big = *Tensor::Allocate(DType::kFloat, large);
  for (int k = 0; k < 1 << 19; ++k) big.data<float>()[k] = k;
  add(kEdges, big);
  Tensor words = *Tensor::Allocate(DType::kString, Shape{2});
  words.data<std::string>()[1] = "word";
  add(kEdges + 1, words);
  std::vector<std::string> fetches;
  for (const Edge& e : here) fetches.push_back(e.node->name() + ":0");
  auto session = Session(*worker_);
  ASSERT_TRUE(Run(*session, fetches, {}).ok());
  const int before = *sent_by_worker_;
  for (int turn = 0; turn < 3; ++turn) {
    const auto out = Run(*session, fetches, {});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int i = 0; i < kEdges; ++i) {
      ASSERT_EQ((*out)[i].shape(), Shape({i + 1}));
      EXPECT_EQ((*out)[i].data<float>()[i], -(i + i * 0.5f));
    }
    EXPECT_EQ((*out)[kEdges].data<float>()[77777], -77777);
    EXPECT_EQ((*out)[kEdges + 1].data<std::string>()[1], "word");
  }
  EXPECT_LT(*sent_by_worker_ - before, 3 * 20);
}

// What the own part gives before it waits goes with the call that runs the
// other part, so nobody asks for it.
TEST_F(TwoTasks, WhatIsGivenAtOnceTakesNoCall) {
  AddVariable();
  auto session = Session(*worker_);
  ASSERT_EQ(Run(*session, {}, {"init"}).status(), OkStatus());
  ASSERT_EQ(Run(*session, {}, {"add"}).status(), OkStatus());
  const int before = *sent_by_worker_;
  for (int turn = 0; turn < 5; ++turn) {
    ASSERT_EQ(Run(*session, {}, {"add"}).status(), OkStatus());
  }
  // Each is asked of the master, in this process, and of the other task.
  EXPECT_EQ(*sent_by_worker_ - before, 10);
  const auto out = Run(*session, {"read:0"}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 16);
  // An own part that fails before it gives runs no other.
  Add("wrong", "Reshape",
      {Constant("three", 3, kWorkerTask),
       Add("x", "Placeholder", {}, {{"dtype", DType::kInt32}}, kWorkerTask)},
      {}, kWorkerTask);
  Add("add_wrong", "AssignAddVariableOp",
      {Edge{graph_->FindNode("v"), 0}, Edge{graph_->FindNode("wrong"), 0}}, {},
      "");
  const Status s =
      Run(*session, {}, {"add_wrong"}, {{"x:0", Tensor::Vector<int32_t>({2})}})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
}

TEST_F(TwoTasks, ASenderThatDiesEndsWhatManyEdgesWaitFor) {
  std::vector<std::string> fetches;
  for (int i = 0; i < 3; ++i) {
    const std::string n = absl::StrCat("q", i);
    Edge queue =
        Add(n.c_str(), "FIFOQueueV2", {},
            {{"component_types", std::vector<DType>{DType::kFloat}}}, kPsTask);
    Edge taken =
        Add((n + "t").c_str(), "QueueDequeueV2", {queue},
            {{"component_types", std::vector<DType>{DType::kFloat}}}, kPsTask);
    Add((n + "h").c_str(), "Neg", {taken}, {}, kWorkerTask);
    fetches.push_back(n + "h:0");
  }
  Constant("c", 1, kPsTask);
  auto session = Session(*worker_);
  ASSERT_TRUE(Run(*session, {"c:0"}, {}).ok());  // it has met both
  Status ended;
  std::thread waits([&] { ended = Run(*session, fetches, {}).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ps_.reset();
  waits.join();
  EXPECT_FALSE(ended.ok());
}

TEST_F(TwoTasks, StepsOverlapAndStop) {
  Edge q = Add("q", "FIFOQueueV2", {},
               {{"component_types", std::vector<DType>{DType::kFloat}},
                {"shared_name", "q"}},
               kPsTask);
  Edge x = Add("take", "QueueDequeueV2", {q},
               {{"component_types", std::vector<DType>{DType::kFloat}}}, "");
  Add("there", "Neg", {x}, {}, kWorkerTask);
  Add("give", "QueueEnqueueV2", {q, Constant("c", 7, kWorkerTask)}, {}, "");
  auto waits = Session(*worker_), gives = Session(*ps_);
  {
    const Deadline deadline(100);
    const Status s = Run(*waits, {"there:0"}, {}).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  }
  StatusOr<std::vector<Tensor>> got;
  std::thread waiting([&] { got = Run(*waits, {"there:0"}, {}); });
  EXPECT_EQ(Run(*gives, {}, {"give"}).status(), OkStatus());
  waiting.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<float>(), -7);
  // What a master closes ends.
  Status s;
  std::thread closed([&] { s = Run(*waits, {"there:0"}, {}).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(waits->Close(), OkStatus());
  closed.join();
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  // And what waits on a task that stops.
  auto other = Session(*worker_);
  EXPECT_TRUE(Run(*other, {"c:0"}, {}).ok());  // it has met both
  std::thread stopped([&] { s = Run(*other, {"there:0"}, {}).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ps_->Stop();
  stopped.join();
  EXPECT_FALSE(s.ok());
  EXPECT_FALSE(Run(*gives, {}, {"give"}).ok());
}

TEST_F(TwoTasks, StrangersAreRefused) {
  const auto channel = transports_.back()->Connect("ps:1", {});
  for (const char* method : {"GetStatus", "CreateWorkerSession"}) {
    tensorflow::GetStatusResponse response;
    const Status s = CallAndWait(*channel, absl::StrCat(kWorkerService, method),
                                 tensorflow::GetStatusRequest(), &response, {});
    EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  }
}

TEST_F(TwoTasks, ServersThatCannotBe) {
  ServerOptions options;
  options.transport = transports_.back().get();
  tensorflow::ServerDef def;
  auto* job = def.mutable_cluster()->add_job();
  job->set_name("worker");
  (*job->mutable_tasks())[0] = "worker:1";
  def.set_job_name("ps");
  EXPECT_EQ(Server::Make(def, options).status(),
            Internal("Job \"ps\" was not defined in cluster"));
  def.set_job_name("worker");
  def.set_task_index(3);
  EXPECT_EQ(Server::Make(def, options).status(),
            Internal("Task 3 was not defined in job \"worker\""));
  def.set_task_index(0);
  const Status s = Server::Make(def, options).status();
  EXPECT_EQ(s.message().substr(0, 27), "Could not start gRPC server") << s;
  (*job->mutable_tasks())[0] = "worker:x";
  EXPECT_EQ(Server::Make(def, options).status(),
            InvalidArgument(
                "Could not parse port for local server from \"worker:x\"."));
}

}  // namespace
}  // namespace headrace::distributed
