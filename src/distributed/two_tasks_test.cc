// Graphs on two tasks of one process, by sessions of one of them.
#include <thread>

#include "distributed/client.h"
#include "distributed/local_transport.h"
#include "distributed/server.h"
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
    network_ = *LocalNetwork::Create();
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
    auto stub = MasterStub::Of(at.target(), [=](const std::string& address) {
      return transport->Connect(address, {});
    });
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
    Edge v = Add("v", "VarHandleOp", {},
                 {{"dtype", DType::kFloat}, {"shape", Shape()},
                  {"shared_name", "v"}},
                 kPsTask);
    Add("init", "AssignVariableOp", {v, Constant("ten", 10, kWorkerTask)}, {},
        "");
    Add("read", "ReadVariableOp", {v}, {{"dtype", DType::kFloat}}, "");
    Add("add", "AssignAddVariableOp", {v, Constant("one", 1, kWorkerTask)}, {},
        "");
    Add("twice", "Mul", {Edge{graph_->FindNode("read"), 0},
                         Constant("two", 2, kWorkerTask)},
        {}, kWorkerTask);
  }

  static StatusOr<std::vector<Tensor>> Run(ClientSession& s,
                                           std::vector<std::string> fetches,
                                           std::vector<std::string> targets) {
    StepRequest request;
    request.fetches = std::move(fetches);
    request.targets = std::move(targets);
    std::vector<Tensor> out;
    HR_RETURN_IF_ERROR(s.Run(std::move(request), &out, nullptr));
    return out;
  }

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

}  // namespace
}  // namespace headrace::distributed
