// What a task says to remote clients of eager ops, good and bad.
#include "distributed/eager/eager_service.h"

#include <thread>

#include "distributed/messages.h"
#include "distributed/test_call.h"
#include "gtest/gtest.h"
#include "tensor/tensor_proto.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow::eager;  // NOLINT: the messages of the service

constexpr char kDevice[] = "/job:worker/replica:0/task:0/device:CPU:0";

class EagerServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto cluster =
        Cluster::Make(Def("ps"), [](const std::string&) { return nullptr; });
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    contexts_ =
        std::make_shared<EagerContexts>(std::make_shared<Worker>(*cluster, 1));
    methods_ = EagerMethods(contexts_);
  }

  static tensorflow::ServerDef Def(const char* job) {
    tensorflow::ServerDef def;
    auto* added = def.mutable_cluster()->add_job();
    added->set_name(job);
    (*added->mutable_tasks())[0] = "here:1";
    def.set_job_name(job);
    return def;
  }
  template <typename Response>
  Status Call(const char* method, const google::protobuf::Message& request,
              Response* response) {
    const Answer answer =
        StartCall(methods_,
                  absl::StrCat("/tensorflow.eager.EagerService/", method),
                  request.SerializeAsString())
            ->answer();
    HR_RETURN_IF_ERROR(StatusOf(answer));
    return ReadMessage(answer.body, response);
  }
  // The client calls the task by another name than it has.
  Status Create(uint64_t id, int64_t keep_alive_secs = 0) {
    CreateContextRequest request;
    *request.mutable_server_def() = Def("worker");
    request.set_context_id(id);
    request.set_keep_alive_secs(keep_alive_secs);
    CreateContextResponse response;
    HR_RETURN_IF_ERROR(Call("CreateContext", request, &response));
    EXPECT_EQ(response.device_attributes(0).name(), kDevice);
    return OkStatus();
  }
  Status Enqueue(std::vector<QueueItem> items, EnqueueResponse* response,
                 uint64_t id = 7) {
    EnqueueRequest request;
    request.set_context_id(id);
    for (QueueItem& item : items) *request.add_queue() = std::move(item);
    return Call("Enqueue", request, response);
  }
  static QueueItem SendTwo(int64_t op) {
    QueueItem item;
    auto* send = item.mutable_send_tensor();
    send->set_op_id(op);
    send->set_device_name(kDevice);
    auto* tensor = send->add_tensors();
    tensor->set_dtype(tensorflow::DT_FLOAT);
    tensor->mutable_tensor_shape()->add_dim()->set_size(2);
    tensor->add_float_val(1);
    tensor->add_float_val(2);
    return item;
  }
  static QueueItem Op(const char* name, int64_t id, int64_t input) {
    QueueItem item;
    auto* op = item.mutable_operation();
    op->set_name(name);
    op->set_id(id);
    op->set_device(kDevice);
    op->add_op_inputs()->mutable_remote_handle()->set_op_id(input);
    (*op->mutable_attrs())["T"].set_type(tensorflow::DT_FLOAT);
    return item;
  }
  static QueueItem Drop(int64_t op) {
    QueueItem item;
    item.mutable_handle_to_decref()->set_op_id(op);
    return item;
  }

  std::shared_ptr<EagerContexts> contexts_;
  Methods methods_;
};

TEST_F(EagerServiceTest, RunsOpsOnWhatIsSent) {
  ASSERT_EQ(Create(7), OkStatus());
  EnqueueResponse response;
  ASSERT_EQ(Enqueue({SendTwo(1), Op("Neg", 2, 1)}, &response), OkStatus());
  ASSERT_EQ(response.queue_response_size(), 2);
  EXPECT_EQ(response.queue_response(1).shape(0).dim(0).size(), 2);
  const auto context = contexts_->Find(7);
  ASSERT_TRUE(context.ok());
  EXPECT_EQ((*context)->handles().Get(2, 0)->data<float>()[1], -2);
  ASSERT_EQ(Enqueue({Drop(1), Drop(2)}, &response), OkStatus());
  EXPECT_EQ((*context)->handles().size(), 0u);
}

TEST_F(EagerServiceTest, TensorsThatAreKeptAreCounted) {
  contexts_ = std::make_shared<EagerContexts>(contexts_->worker(), 24);
  methods_ = EagerMethods(contexts_);
  ASSERT_EQ(Create(7), OkStatus());
  ASSERT_EQ(Create(8), OkStatus());
  EnqueueResponse response;
  ASSERT_EQ(Enqueue({SendTwo(1), Op("Neg", 2, 1)}, &response), OkStatus());
  ASSERT_EQ(Enqueue({SendTwo(1)}, &response, 8), OkStatus());
  EXPECT_EQ(contexts_->kept_bytes(), 24);
  EXPECT_TRUE(absl::IsResourceExhausted(Enqueue({SendTwo(2)}, &response, 8)));
  // One in the place of another, and one more when one has gone.
  EXPECT_TRUE(absl::IsResourceExhausted(Enqueue({SendTwo(1)}, &response)));
  ASSERT_EQ(Enqueue({Drop(2), SendTwo(1), SendTwo(1)}, &response), OkStatus());
  EXPECT_EQ(contexts_->kept_bytes(), 16);
  contexts_->Close(7);
  EXPECT_EQ(contexts_->kept_bytes(), 8);
}

TEST_F(EagerServiceTest, OutputsOfNoNumberGoWithTheAnswer) {
  ASSERT_EQ(Create(7), OkStatus());
  EnqueueResponse response;
  ASSERT_EQ(Enqueue({SendTwo(1), Op("Neg", -1, 1)}, &response), OkStatus());
  const auto t = TensorFromProto(response.queue_response(1).tensor(0));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(t->data<float>()[1], -2);
}

TEST_F(EagerServiceTest, FunctionsAndTheirPartsRun) {
  ASSERT_EQ(Create(7), OkStatus());
  QueueItem add;
  auto& function = *add.mutable_register_function()->mutable_function_def();
  auto& signature = *function.mutable_signature();
  signature.set_name("doubled");
  signature.add_input_arg()->set_name("x");
  signature.mutable_input_arg(0)->set_type(tensorflow::DT_FLOAT);
  signature.add_output_arg()->set_name("y");
  signature.mutable_output_arg(0)->set_type(tensorflow::DT_FLOAT);
  auto* node = function.add_node_def();
  node->set_name("sum");
  node->set_op("AddV2");
  node->add_input("x");
  node->add_input("x");
  (*node->mutable_attr())["T"].set_type(tensorflow::DT_FLOAT);
  (*function.mutable_ret())["y"] = "sum:z:0";
  EnqueueResponse response;
  // Twice is once.
  ASSERT_EQ(Enqueue({SendTwo(1), add, add, Op("doubled", 2, 1)}, &response),
            OkStatus());
  const auto context = contexts_->Find(7);
  EXPECT_EQ((*context)->handles().Get(2, 0)->data<float>()[1], 4);
  RunComponentFunctionRequest part;
  part.set_context_id(7);
  *part.mutable_operation() = Op("doubled", 3, 2).operation();
  part.add_output_num(5);
  RunComponentFunctionResponse ran;
  EXPECT_TRUE(absl::IsInternal(Call("RunComponentFunction", part, &ran)));
  part.mutable_operation()->set_is_component_function(true);
  ASSERT_EQ(Call("RunComponentFunction", part, &ran), OkStatus());
  EXPECT_EQ((*context)->handles().Get(3, 5)->data<float>()[1], 8);
  QueueItem remove;
  remove.mutable_remove_function()->set_function_name("doubled");
  EXPECT_EQ(Enqueue({remove}, &response), OkStatus());
  EXPECT_TRUE(absl::IsNotFound(Enqueue({Op("doubled", 9, 1)}, &response)));
}

TEST_F(EagerServiceTest, TensorsAreFetchedByTheRendezvousOfTheContext) {
  ASSERT_EQ(Create(7), OkStatus());
  QueueItem send = Op("_Send", -1, 1);
  auto& attrs = *send.mutable_operation()->mutable_attrs();
  attrs["tensor_name"].set_s("edge");
  attrs["send_device"].set_s(kDevice);
  attrs["recv_device"].set_s("/job:client/replica:0/task:0/device:CPU:0");
  const uint64_t incarnation = contexts_->worker()->incarnation();
  attrs["send_device_incarnation"].set_i(static_cast<int64_t>(incarnation));
  EnqueueResponse response;
  ASSERT_EQ(Enqueue({SendTwo(1), send}, &response), OkStatus());
  tensorflow::RecvTensorRequest request;
  request.set_step_id(7);
  DeviceName from, to;
  ASSERT_TRUE(DeviceName::Parse(kDevice, &from));
  ASSERT_TRUE(
      DeviceName::Parse("/job:client/replica:0/task:0/device:CPU:0", &to));
  request.set_rendezvous_key(
      RendezvousKey::Of(from, incarnation, to, "edge").text);
  float got = 0;
  contexts_->worker()->Receive(request, [&](StatusOr<SentValue> value) {
    if (value.ok()) got = value->tensor.data<float>()[1];
  });
  EXPECT_EQ(got, 2);
}

TEST_F(EagerServiceTest, VariablesAreTheContextsOwn) {
  ASSERT_EQ(Create(7), OkStatus());
  ASSERT_EQ(Create(8), OkStatus());
  QueueItem handle;
  auto* op = handle.mutable_operation();
  op->set_name("VarHandleOp");
  op->set_id(3);
  (*op->mutable_attrs())["dtype"].set_type(tensorflow::DT_FLOAT);
  (*op->mutable_attrs())["shape"].mutable_shape()->add_dim()->set_size(2);
  (*op->mutable_attrs())["shared_name"].set_s("v");
  QueueItem assign;
  op = assign.mutable_operation();
  op->set_name("AssignVariableOp");
  op->set_id(4);
  op->add_op_inputs()->mutable_remote_handle()->set_op_id(3);
  op->add_op_inputs()->mutable_remote_handle()->set_op_id(1);
  (*op->mutable_attrs())["dtype"].set_type(tensorflow::DT_FLOAT);
  QueueItem read;
  op = read.mutable_operation();
  op->set_name("ReadVariableOp");
  op->set_id(5);
  op->add_op_inputs()->mutable_remote_handle()->set_op_id(3);
  (*op->mutable_attrs())["dtype"].set_type(tensorflow::DT_FLOAT);
  EnqueueResponse response;
  ASSERT_EQ(Enqueue({SendTwo(1), handle, assign, read}, &response), OkStatus());
  EXPECT_EQ((*contexts_->Find(7))->handles().Get(5, 0)->data<float>()[1], 2);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Enqueue({handle, read}, &response, 8)));
}

TEST_F(EagerServiceTest, BadRequestsHaveUpstreamsWords) {
  const Status gone = Aborted(
      "Unable to find a context_id matching the specified one (9). Perhaps the "
      "worker was restarted, or the context was GC'd?");
  EnqueueResponse response;
  EXPECT_EQ(Enqueue({}, &response, 9), gone);
  KeepAliveRequest keep;
  keep.set_context_id(9);
  KeepAliveResponse kept;
  EXPECT_EQ(Call("KeepAlive", keep, &kept), gone);
  CloseContextRequest close;
  close.set_context_id(9);
  CloseContextResponse closed;
  EXPECT_EQ(Call("CloseContext", close, &closed), OkStatus());
  ASSERT_EQ(Create(9), OkStatus());
  EXPECT_EQ(Enqueue({Drop(3)}, &response, 9),
            InvalidArgument("Unable to find the relevant tensor remote_handle: "
                            "Op ID: 3, Output num: 0"));
  EXPECT_EQ(Enqueue({QueueItem()}, &response, 9), OkStatus());
  EXPECT_TRUE(absl::IsNotFound(
      Enqueue({SendTwo(1), Op("NoSuchOp", 2, 1)}, &response, 9)));
  EXPECT_EQ(Enqueue({SendTwo(1)}, &response, 9), OkStatus());
  EXPECT_EQ(Call("CloseContext", close, &closed), OkStatus());
  EXPECT_EQ(contexts_->size(), 0u);
  EXPECT_EQ(Call("CloseContext", close, &closed), OkStatus());
}

TEST_F(EagerServiceTest, WhatIsNotKeptAliveIsLetGo) {
  ASSERT_EQ(Create(7, 5), OkStatus());
  ASSERT_EQ(Create(8), OkStatus());
  const auto now = EagerContext::Clock::now();
  contexts_->Sweep(now + std::chrono::seconds(4));
  EXPECT_EQ(contexts_->size(), 2u);
  contexts_->Sweep(now + std::chrono::seconds(60));
  EXPECT_EQ(contexts_->size(), 1u);
  EXPECT_FALSE(contexts_->Find(7).ok());
}

TEST_F(EagerServiceTest, ClosingEndsWhatWaits) {
  ASSERT_EQ(Create(7), OkStatus());
  EnqueueRequest request;
  request.set_context_id(7);
  auto* op = request.add_queue()->mutable_operation();
  op->set_name("_Recv");
  op->set_id(2);
  auto& attrs = *op->mutable_attrs();
  attrs["tensor_type"].set_type(tensorflow::DT_FLOAT);
  attrs["tensor_name"].set_s("edge");
  attrs["send_device"].set_s(kDevice);
  attrs["recv_device"].set_s(kDevice);
  const auto waiting =
      StartCall(methods_, "/tensorflow.eager.EagerService/Enqueue",
                request.SerializeAsString());
  EXPECT_FALSE(waiting->ended());
  contexts_->Stop();
  EXPECT_FALSE(StatusOf(waiting->answer()).ok());
}

class CallsTest : public EagerServiceTest {
 protected:
  // A call of an op on what `input` names, whose outputs are given.
  static void AddCall(RunCallsRequest* request, const char* op, int64_t input) {
    *request->add_call() = Op(op, -1, input).operation();
  }
  std::shared_ptr<TestCall> Start(const RunCallsRequest& request) {
    return StartCall(methods_, "/headrace.EagerService/RunCalls",
                     request.SerializeAsString(), /*takes_parts=*/true);
  }
  // What all that came says of the calls.
  static std::vector<tensorflow::RunStepResponse> Done(TestCall& call) {
    std::vector<Bytes> all = call.parts();
    all.push_back(call.answer().body);
    std::vector<tensorflow::RunStepResponse> done;
    for (const Bytes& part : all) {
      RunStepsResponse read;
      EXPECT_EQ(ReadMessage(part, &read), OkStatus());
      done.insert(done.end(), read.done().begin(), read.done().end());
    }
    return done;
  }
  static RunCallsRequest OfContext() {
    RunCallsRequest request;
    request.set_context_id(7);
    request.set_request_id(5);
    request.set_begin_within_us(1'000'000);
    return request;
  }
};

TEST_F(CallsTest, RunOneBehindTheOther) {
  ASSERT_EQ(Create(7), OkStatus());
  RunCallsRequest request = OfContext();
  *request.add_first() = SendTwo(1);
  AddCall(&request, "Neg", 1);
  AddCall(&request, "Square", 1);
  AddCall(&request, "Neg", 99);  // what is not there
  AddCall(&request, "Neg", 1);   // not begun
  const auto call = Start(request);
  ASSERT_EQ(StatusOf(call->answer()), OkStatus());
  const auto done = Done(*call);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_EQ(done[0].tensor(0).name(), "0");
  EXPECT_EQ(TensorFromProto(done[0].tensor(0).tensor())->data<float>()[1], -2);
  EXPECT_EQ(TensorFromProto(done[1].tensor(0).tensor())->data<float>()[1], 4);
  EXPECT_EQ(done[2].status_code(), tensorflow::error::INVALID_ARGUMENT);
  // Outputs are kept nowhere.
  EXPECT_EQ((*contexts_->Find(7))->handles().size(), 1u);
}

TEST_F(CallsTest, WhatIsNotBegunIsGivenBack) {
  ASSERT_EQ(Create(7), OkStatus());
  RunCallsRequest request = OfContext();
  *request.add_first() = SendTwo(1);
  AddCall(&request, "Neg", 1);
  auto* waits = request.add_call();  // for what nobody sends
  waits->set_name("_Recv");
  waits->set_id(-1);
  waits->set_device(kDevice);
  auto& attrs = *waits->mutable_attrs();
  attrs["send_device"].set_s(kDevice);
  attrs["recv_device"].set_s(kDevice);
  attrs["tensor_name"].set_s("edge");
  AddCall(&request, "Neg", 1);
  const auto call = Start(request);
  while (call->parts().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  // The first one has ended, so the second one is begun soon.
  GiveBackStepsRequest back;
  back.set_request_id(5);
  const auto give_back = [&] {
    return StartCall(methods_, "/headrace.EagerService/GiveBackCalls",
                     back.SerializeAsString())
        ->answer();
  };
  const Answer answer = give_back();
  ASSERT_EQ(StatusOf(answer), OkStatus());
  GiveBackStepsResponse begun;
  ASSERT_EQ(ReadMessage(answer.body, &begun), OkStatus());
  EXPECT_TRUE(begun.begun() == 1 || begun.begun() == 2) << begun.begun();
  call->Cancel();
  const Status s = StatusOf(call->answer());
  EXPECT_LE(Done(*call).size(), 2u) << s;
  // Behind its end nobody knows it.
  EXPECT_TRUE(absl::IsNotFound(StatusOf(give_back())));
}

TEST_F(CallsTest, BadOnesAreRefused) {
  ASSERT_EQ(Create(7), OkStatus());
  RunCallsRequest request = OfContext();
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(Start(request)->answer())));
  *request.add_first() = SendTwo(1);
  AddCall(&request, "Neg", 1);
  request.set_request_id(0);
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(Start(request)->answer())));
  request.set_request_id(5);
  request.mutable_call(0)->set_id(3);
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(Start(request)->answer())));
  request.mutable_call(0)->set_id(-1);
  request.set_context_id(8);
  EXPECT_TRUE(absl::IsAborted(StatusOf(Start(request)->answer())));
  // What is first fails: no call is begun.
  request.set_context_id(7);
  *request.add_first() = Drop(44);
  const auto call = Start(request);
  EXPECT_FALSE(StatusOf(call->answer()).ok());
  EXPECT_TRUE(call->parts().empty());
  EXPECT_FALSE(
      StatusOf(StartCall(methods_, "/headrace.EagerService/RunCalls", "\xff")
                   ->answer())
          .ok());
}

}  // namespace
}  // namespace headrace::distributed
