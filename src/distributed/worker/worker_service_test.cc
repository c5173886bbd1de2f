// What a worker says to requests, good and bad.
#include "distributed/worker/worker_service.h"

#include <thread>

#include "distributed/test_call.h"
#include "distributed/wire/gathered.h"
#include "distributed/wire/methods.h"
#include "gtest/gtest.h"
#include "headrace/worker.pb.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

constexpr char kDevice[] = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr char kOther[] = "/job:worker/replica:0/task:0/device:CPU:0";

class WorkerServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ServerDef def;
    for (const char* name : {"ps", "worker"}) {
      auto* job = def.mutable_cluster()->add_job();
      job->set_name(name);
      (*job->mutable_tasks())[0] = absl::StrCat(name, ":1");
    }
    def.set_job_name("ps");
    auto cluster = Cluster::Make(
        def, [](const std::string&) { return std::shared_ptr<Channel>(); });
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    worker_ = std::make_shared<Worker>(*cluster, 1);
    methods_ = WorkerMethods(worker_);
  }

  template <typename Response>
  Status Call(const char* method, const google::protobuf::Message& request,
              Response* response) {
    const Answer answer =
        StartCall(methods_, absl::StrCat(kWorkerService, method),
                  request.SerializeAsString())
            ->answer();
    HR_RETURN_IF_ERROR(StatusOf(answer));
    return ReadMessage(answer.body, response);
  }

  // b = -[1, 2], sent to the other task and to the client.
  static RegisterGraphRequest Graph(uint64_t incarnation) {
    RegisterGraphRequest request;
    GraphDef& graph = *request.mutable_graph_def();
    graph.mutable_versions()->set_producer(2474);
    NodeDef* a = AddNode(&graph, "a", "Const");
    (*a->mutable_attr())["dtype"].set_type(DT_FLOAT);
    Tensor two = *Tensor::Allocate(DType::kFloat, headrace::Shape({2}));
    two.data<float>()[0] = 1;
    two.data<float>()[1] = 2;
    EXPECT_TRUE(
        TensorToProto(two, (*a->mutable_attr())["value"].mutable_tensor())
            .ok());
    NodeDef* b = AddNode(&graph, "b", "Neg");
    b->add_input("a");
    (*b->mutable_attr())["T"].set_type(DT_FLOAT);
    for (const bool client : {false, true}) {
      NodeDef* s = AddNode(&graph, client ? "s2" : "s1", "_Send");
      s->add_input("b");
      auto& attrs = *s->mutable_attr();
      attrs["T"].set_type(DT_FLOAT);
      attrs["tensor_name"].set_s(client ? "b:0" : "edge_1_b");
      attrs["send_device"].set_s(kDevice);
      attrs["recv_device"].set_s(client ? kDevice : kOther);
      attrs["send_device_incarnation"].set_i(static_cast<int64_t>(incarnation));
      attrs["client_terminated"].set_b(client);
    }
    return request;
  }
  static void AddEnd(NodeDef* node, const char* edge, const char* from,
                     const char* to, int64_t incarnation) {
    auto& attrs = *node->mutable_attr();
    attrs["tensor_name"].set_s(edge);
    attrs["send_device"].set_s(from);
    attrs["recv_device"].set_s(to);
    attrs["send_device_incarnation"].set_i(incarnation);
    attrs["client_terminated"].set_b(false);
  }
  static NodeDef* AddNode(GraphDef* graph, const char* name, const char* op) {
    NodeDef* node = graph->add_node();
    node->set_name(name);
    node->set_op(op);
    node->set_device(kDevice);
    return node;
  }
  std::string Key(const char* to, const char* edge) const {
    DeviceName from, other;
    EXPECT_TRUE(DeviceName::Parse(kDevice, &from));
    EXPECT_TRUE(DeviceName::Parse(to, &other));
    return RendezvousKey::Of(from, worker_->incarnation(), other, edge).text;
  }
  Status Register(const RegisterGraphRequest& request) {
    RegisterGraphResponse response;
    return Call("RegisterGraph", request, &response);
  }

  std::shared_ptr<Worker> worker_;
  Methods methods_;
};

TEST_F(WorkerServiceTest, RunsAndSends) {
  GetStatusResponse status;
  ASSERT_TRUE(Call("GetStatus", GetStatusRequest(), &status).ok());
  ASSERT_EQ(status.device_attributes_size(), 1);
  EXPECT_EQ(status.device_attributes(0).name(), kDevice);
  EXPECT_EQ(status.device_attributes(0).device_type(), "CPU");
  RegisterGraphResponse registered;
  const auto graph = Graph(status.device_attributes(0).incarnation());
  ASSERT_EQ(Call("RegisterGraph", graph, &registered), OkStatus());
  EXPECT_EQ(registered.graph_handle(), "0000000000000000");
  // Asked for before it is sent.
  RecvTensorRequest receive;
  receive.set_step_id(7);
  receive.set_rendezvous_key(Key(kOther, "edge_1_b"));
  receive.set_request_id(11);
  const auto waiting =
      StartCall(methods_, absl::StrCat(kWorkerService, "RecvTensor"),
                receive.SerializeAsString());
  EXPECT_FALSE(waiting->ended());
  RunGraphRequest run;
  run.set_graph_handle(registered.graph_handle());
  run.set_step_id(7);
  run.add_recv_key(Key(kDevice, "b:0"));
  run.set_request_id(12);
  RunGraphResponse ran;
  ASSERT_EQ(Call("RunGraph", run, &ran), OkStatus());
  ASSERT_EQ(ran.recv_size(), 1);
  EXPECT_EQ(TensorFromProto(ran.recv(0).tensor())->data<float>()[1], -2);
  RecvTensorResponse received;
  ASSERT_TRUE(ReadMessage(waiting->answer().body, &received).ok());
  EXPECT_EQ(TensorFromProto(received.tensor())->data<float>()[0], -1);
  // Once alone.
  EXPECT_EQ(Call("RunGraph", run, &ran).message().substr(0, 62),
            "The same RunGraph (Worker) request was received twice. graph_h");
  EXPECT_EQ(Call("RecvTensor", receive, &received).message().substr(0, 63),
            "The same RecvTensor (GrpcWorker) request was received twice. st");
  CleanupGraphRequest clean;
  clean.set_step_id(7);
  CleanupGraphResponse cleaned;
  EXPECT_TRUE(Call("CleanupGraph", clean, &cleaned).ok());
  DeregisterGraphRequest forget;
  forget.set_graph_handle(registered.graph_handle());
  DeregisterGraphResponse forgotten;
  EXPECT_TRUE(Call("DeregisterGraph", forget, &forgotten).ok());
  run.set_request_id(0);
  EXPECT_EQ(Call("RunGraph", run, &ran),
            Aborted("Graph handle is not found: 0000000000000000"));
  run.set_store_errors_in_response_body(true);
  EXPECT_EQ(Call("RunGraph", run, &ran), OkStatus());
  EXPECT_EQ(ran.status_code(), error::ABORTED);
  EXPECT_EQ(ran.status_error_message(),
            "Graph handle is not found: 0000000000000000");
}

TEST_F(WorkerServiceTest, BadRequestsHaveUpstreamsWords) {
  const uint64_t own = worker_->incarnation();
  RegisterGraphRequest request = Graph(own);
  request.set_session_handle("nope");
  request.set_create_worker_session_called(true);
  EXPECT_EQ(Register(request),
            Aborted("Session handle is not found: nope. Possibly this worker "
                    "(\"/job:ps/replica:0/task:0\") just restarted."));
  request = Graph(own);
  request.mutable_graph_def()->mutable_node(0)->set_device(kOther);
  EXPECT_EQ(Register(request), InvalidArgument(kOther, " unknown device."));
  request = Graph(own);
  request.mutable_graph_def()->mutable_node(0)->set_op("NoSuchOp");
  Status s = Register(request);
  EXPECT_TRUE(absl::IsNotFound(s)) << s;
  EXPECT_EQ(s.message().substr(0, 51),
            "Op type not registered 'NoSuchOp' in binary running");
  request = Graph(own);
  request.mutable_graph_def()->mutable_versions()->set_producer(5000);
  request.mutable_graph_def()->mutable_versions()->set_min_consumer(4000);
  s = Register(request);
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  EXPECT_NE(s.message().find(
                "GraphDef min consumer version 4000 above current version "
                "2474"),
            std::string::npos)
      << s;
  request = Graph(own);
  request.mutable_graph_def()->mutable_versions()->add_bad_consumers(2474);
  s = Register(request);
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  EXPECT_NE(s.message().find("GraphDef disallows consumer version 2474."),
            std::string::npos)
      << s;
  request = Graph(own);
  request.mutable_graph_def()->mutable_versions()->set_producer(1);
  EXPECT_EQ(Register(request), OkStatus());
  request = Graph(own);
  (*request.mutable_graph_def()->mutable_node(1)->mutable_attr())["newer_attr"]
      .set_i(3);
  EXPECT_EQ(Register(request), OkStatus());

  RecvTensorRequest receive;
  RecvTensorResponse received;
  receive.set_rendezvous_key("garbage");
  EXPECT_EQ(Call("RecvTensor", receive, &received),
            InvalidArgument("Invalid  rendezvous key: garbage"));
  receive.set_rendezvous_key(
      absl::StrCat(kDevice, ";00000000deadbeef;", kOther, ";edge_1_b;0:0"));
  EXPECT_EQ(
      Call("RecvTensor", receive, &received),
      Aborted("RecvTensor expects a different device incarnation: 3735928559 "
              "vs. ",
              own,
              ". Your worker job (\"/job:ps/replica:0/task:0\") was probably "
              "restarted. Check your worker job for the reason why it was "
              "restarted."));
  const Answer refused =
      StartCall(methods_, absl::StrCat(kWorkerService, "RunGraph"), "\xff\xff")
          ->answer();
  EXPECT_EQ(StatusOf(refused),
            Internal("Unable to parse request: 2 bytes are no "
                     "tensorflow.RunGraphRequest"));
  DeregisterGraphRequest gone;
  DeregisterGraphResponse unused;
  gone.set_graph_handle("zz");
  EXPECT_EQ(Call("DeregisterGraph", gone, &unused),
            Aborted("Graph handle is not found: zz. Possibly, this worker just "
                    "restarted."));
  CreateWorkerSessionResponse created;
  EXPECT_EQ(Call("CreateWorkerSession", CreateWorkerSessionRequest(), &created),
            InvalidArgument("Session must be non-empty."));
  for (const char* name : {"Logging", "Tracing"}) {
    EXPECT_EQ(
        StatusOf(StartCall(methods_, absl::StrCat(kWorkerService, name), "")
                     ->answer()),
        Unimplemented(name));
  }
}

TEST_F(WorkerServiceTest, ManyThatAreAskedForTogether) {
  GetStatusResponse status;
  ASSERT_TRUE(Call("GetStatus", GetStatusRequest(), &status).ok());
  PullTensorsRequest pull;
  pull.set_step_id(9);
  const auto ask = [&] {
    return StartCall(methods_, worker::kPullTensors.path,
                     pull.SerializeAsString());
  };
  EXPECT_EQ(ask()->answer().code, 0);  // for nothing
  pull.set_request_id(5);
  pull.add_rendezvous_key(Key(kOther, "edge_1_b"));
  pull.add_rendezvous_key(Key(kOther, "edge_2_b"));
  // Who goes leaves nothing behind.
  const auto waits = ask();
  EXPECT_FALSE(waits->ended());
  waits->Cancel();
  EXPECT_TRUE(absl::IsAborted(StatusOf(ask()->answer())));  // once alone
  pull.set_request_id(6);
  pull.add_rendezvous_key("no key");
  const Status refused = StatusOf(ask()->answer());
  EXPECT_EQ(refused.message(), "Invalid  rendezvous key: no key");
  EXPECT_TRUE(absl::IsInternal(StatusOf(
      StartCall(methods_, worker::kPullTensors.path, "\xff")->answer())));
}

TEST_F(WorkerServiceTest, ARunGivesWhatItsCallerTakes) {
  ASSERT_EQ(Register(Graph(worker_->incarnation())), OkStatus());
  RunAndPullRequest request;
  request.mutable_run()->set_graph_handle("0000000000000000");
  const auto ask = [&](int64_t step) {
    request.mutable_run()->set_step_id(step);
    return StartCall(methods_, worker::kRunAndPull.path,
                     request.SerializeAsString(), /*takes_parts=*/true);
  };
  EXPECT_EQ(StatusOf(ask(1)->answer()), OkStatus());  // nothing is taken
  request.add_rendezvous_key(Key(kOther, "edge_1_b"));
  const auto gives = ask(2);
  EXPECT_EQ(StatusOf(gives->answer()), OkStatus());
  // The run ends at once, so what it sends comes with the answer.
  EXPECT_EQ(gives->parts().size(), 0u);
  const auto given = ReadGathered(gives->answer().body);
  ASSERT_TRUE(given.ok()) << given.status();
  ASSERT_EQ(given->size(), 1u);
  EXPECT_EQ((*given)[0].number, 0u);
  EXPECT_EQ((*given)[0].received.tensor.data<float>()[1], -2);

  // What the graph does not send, and what is no key.
  request.add_rendezvous_key(Key(kOther, "edge_2_b"));
  EXPECT_EQ(StatusOf(ask(3)->answer()),
            InvalidArgument("the graph ran and sent 1 fewer than the 2 values "
                            "that it was asked for"));
  request.set_rendezvous_key(1, "no key");
  EXPECT_EQ(StatusOf(ask(4)->answer()),
            InvalidArgument("Invalid  rendezvous key: no key"));
  request.mutable_rendezvous_key()->RemoveLast();
  // The run's own error.
  request.mutable_run()->set_graph_handle("no graph");
  EXPECT_EQ(StatusOf(ask(5)->answer()),
            Aborted("Graph handle is not found: no graph"));
  request.mutable_run()->add_recv_key(Key(kDevice, "b:0"));
  EXPECT_EQ(StatusOf(ask(6)->answer()),
            InvalidArgument("RunAndPull is for whole runs without fetches"));
  EXPECT_TRUE(absl::IsInternal(StatusOf(
      StartCall(methods_, worker::kRunAndPull.path, "\xff")->answer())));
}

// What a run would ask of its caller may come with it.
TEST_F(WorkerServiceTest, ARunTakesWhatItsCallerGives) {
  RegisterGraphRequest graph;
  GraphDef& def = *graph.mutable_graph_def();
  def.mutable_versions()->set_producer(2474);
  NodeDef* in = AddNode(&def, "in", "_Recv");
  (*in->mutable_attr())["tensor_type"].set_type(DT_FLOAT);
  (*in->mutable_attr())["_alive"].set_b(true);
  AddEnd(in, "edge_in", kOther, kDevice, 5);
  NodeDef* out = AddNode(&def, "out", "_Send");
  out->add_input("in");
  (*out->mutable_attr())["T"].set_type(DT_FLOAT);
  AddEnd(out, "edge_out", kDevice, kOther,
         static_cast<int64_t>(worker_->incarnation()));
  ASSERT_EQ(Register(graph), OkStatus());

  DeviceName from, to;
  ASSERT_TRUE(DeviceName::Parse(kOther, &from));
  ASSERT_TRUE(DeviceName::Parse(kDevice, &to));
  const std::string key = RendezvousKey::Of(from, 5, to, "edge_in").text;
  const auto gathered = [](std::vector<uint32_t> numbers) {
    GatheredWriter all;
    for (const uint32_t n : numbers) {
      GatheredTensor t{n};
      t.received.tensor = Tensor::Scalar<float>(7);
      EXPECT_EQ(all.Add(t), OkStatus());
    }
    return all.Take().Flat();
  };
  int64_t step = 0;
  const auto ask = [&](std::vector<std::string> keys, std::string given) {
    RunAndPullRequest request;
    request.mutable_run()->set_graph_handle("0000000000000000");
    request.mutable_run()->set_step_id(++step);
    request.add_rendezvous_key(Key(kOther, "edge_out"));
    for (std::string& k : keys) request.add_given_key(std::move(k));
    request.set_given(std::move(given));
    return StartCall(methods_, worker::kRunAndPull.path,
                     request.SerializeAsString(), /*takes_parts=*/true)
        ->answer();
  };
  const Answer answer = ask({key}, gathered({0}));
  ASSERT_EQ(StatusOf(answer), OkStatus());
  const auto got = ReadGathered(answer.body);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at(0).received.tensor.scalar<float>(), 7);

  // It is nobody's value, nobody's key, or there twice.
  for (const auto& [keys, given] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{key}, gathered({})},
           {{}, gathered({0})},
           {{key}, gathered({1})},
           {{key, key}, gathered({0, 1})},
           {{key, key}, gathered({0, 0})},
           {{"no key"}, gathered({0})},
           {{Key(kOther, "edge_out")}, gathered({0})},
           {{key}, "\xff\xff"}}) {
    const Status s = StatusOf(ask(keys, given));
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  // Without it the run asks for it, of a task that is not there.
  EXPECT_EQ(StatusOf(ask({}, "")),
            InvalidArgument("No worker known as ", kOther));
}

// A master that died told nobody that its steps were over; its next life ends
// them, with all that they hold of its sessions.
TEST_F(WorkerServiceTest, StepsOfAMastersLastLifeEnd) {
  CreateWorkerSessionRequest create;
  CreateWorkerSessionResponse created;
  create.set_session_handle("first");
  create.set_master_task("/job:worker/replica:0/task:0");
  create.set_master_incarnation(1);
  ASSERT_EQ(Call("CreateWorkerSession", create, &created), OkStatus());
  RegisterGraphRequest graph = Graph(worker_->incarnation());
  graph.set_session_handle("first");
  graph.set_create_worker_session_called(true);
  RegisterGraphResponse registered;
  ASSERT_EQ(Call("RegisterGraph", graph, &registered), OkStatus());
  RunGraphRequest run;
  run.set_session_handle("first");
  run.set_create_worker_session_called(true);
  run.set_graph_handle(registered.graph_handle());
  run.set_step_id(21);
  run.add_recv_key(Key(kDevice, "b:0"));
  RunGraphResponse ran;
  ASSERT_EQ(Call("RunGraph", run, &ran), OkStatus());
  // Another one of the same life changes nothing.
  create.set_session_handle("second");
  ASSERT_EQ(Call("CreateWorkerSession", create, &created), OkStatus());
  EXPECT_EQ(worker_->num_steps(), 1u);
  create.set_session_handle("third");
  create.set_master_incarnation(2);
  ASSERT_EQ(Call("CreateWorkerSession", create, &created), OkStatus());
  EXPECT_EQ(worker_->num_steps(), 0u);
}

TEST_F(WorkerServiceTest, WhoIsGoneWaitsNoLonger) {
  RecvTensorRequest receive;
  receive.set_step_id(8);
  receive.set_rendezvous_key(Key(kOther, "nobody"));
  const auto waiting =
      StartCall(methods_, absl::StrCat(kWorkerService, "RecvTensor"),
                receive.SerializeAsString());
  EXPECT_FALSE(waiting->ended());
  waiting->Cancel();
  const auto aborted =
      StartCall(methods_, absl::StrCat(kWorkerService, "RecvTensor"),
                receive.SerializeAsString());
  worker_->CleanUp(8);
  EXPECT_EQ(StatusOf(aborted->answer()), Aborted("Cleanup 8"));
}

}  // namespace
}  // namespace headrace::distributed
