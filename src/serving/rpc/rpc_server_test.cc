#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <thread>

#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "rpc/server.h"
#include "serving/fixed_models.h"
#include "serving/metrics/metrics.h"
#include "serving/rpc/messages.h"
#include "serving/rpc/services.h"
#include "tensor/tensor_proto.h"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace headrace::serving {
namespace {

namespace api = tensorflow::serving;

std::chrono::system_clock::time_point In(int ms) {
  return std::chrono::system_clock::now() + std::chrono::milliseconds(ms);
}

// A server of the golden model "plain", version 3, and a client of it.
class RpcTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = Servable::Load(
        {"plain", 3}, HR_GOLDEN_DIR "/saved_models/plain", ServableOptions());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    models_.Add(*loaded);
    AddPredictionService(models_, {}, workers_, nullptr, &methods_);
    AddModelService(models_, workers_, &methods_);
    AddHealthService([this] { return models_.Ready(); },
                     {"ModelService", "PredictionService"}, &methods_);
    AddReflectionService(&methods_);
    const RpcMethod slow =
        BytesMethod([this](CallPtr call, grpc::ByteBuffer*, RpcDone done) {
          workers_.Run([this, call, done] {
            ++waiting_;
            while (!call->stop().cancelled()) std::this_thread::yield();
            done(call->stop().status(), {});
          });
        });
    methods_.emplace("/test.Slow/Wait", slow);
    RpcOptions options;
    options.address = ":0";
    options.num_queues = 2;
    auto server = RpcServer::Start(options, std::move(methods_));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                            grpc::InsecureChannelCredentials()));
  }

  template <typename Response>
  grpc::Status Ask(const std::string& path,
                   const google::protobuf::Message& request, Response* response,
                   grpc::ClientContext* given = nullptr) {
    grpc::ClientContext own;
    grpc::ClientContext* context = given != nullptr ? given : &own;
    grpc::CompletionQueue queue;
    grpc::ByteBuffer out = *MessageBytes(request), in;
    auto reader = stub_->PrepareUnaryCall(context, path, out, &queue);
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&in, &status, this);
    void* tag;
    bool ok;
    queue.Next(&tag, &ok);
    if (status.ok()) {
      EXPECT_TRUE(ParseMessage(&in, response).ok());
    }
    return status;
  }
  grpc::Status Predict(const api::PredictRequest& request,
                       api::PredictResponse* response) {
    return Ask("/tensorflow.serving.PredictionService/Predict", request,
               response);
  }
  api::PredictRequest Request() {
    api::PredictRequest request;
    request.mutable_model_spec()->set_name("plain");
    auto& x = (*request.mutable_inputs())["x"];
    x.set_dtype(tensorflow::DT_FLOAT);
    x.mutable_tensor_shape()->add_dim()->set_size(2);
    x.add_float_val(1.5);
    x.add_float_val(-2);
    return request;
  }

  std::atomic<int> waiting_{0};
  Workers workers_{4};
  FixedModels models_;
  RpcMethods methods_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

TEST_F(RpcTest, PredictAnswersWithWhatItUsed) {
  api::PredictResponse response;
  const grpc::Status s = Predict(Request(), &response);
  ASSERT_TRUE(s.ok()) << s.error_message();
  EXPECT_EQ(response.model_spec().name(), "plain");
  EXPECT_EQ(response.model_spec().version().value(), 3);
  EXPECT_EQ(response.model_spec().signature_name(), "serving_default");
  ASSERT_EQ(response.outputs().size(), 2);
  const auto& twice = response.outputs().at("twice");
  ASSERT_EQ(twice.float_val_size(), 2);
  EXPECT_EQ(twice.float_val(0), 3.0f);
  EXPECT_EQ(twice.float_val(1), -4.0f);
}

TEST_F(RpcTest, PredictErrorsAreTheStockServers) {
  struct Row {
    std::function<void(api::PredictRequest&)> change;
    int code;
    std::string text;
  };
  const Row rows[] = {
      {[](auto& r) { r.clear_model_spec(); }, 3, "Missing ModelSpec"},
      {[](auto& r) { r.mutable_model_spec()->clear_name(); }, 3,
       "ModelSpec has no name specified."},
      {[](auto& r) { r.mutable_model_spec()->set_name("none"); }, 5,
       "Servable not found for request: Latest(none)"},
      {[](auto& r) { r.mutable_model_spec()->set_signature_name("s"); }, 9,
       "Serving signature key \"s\" not found."},
      {[](auto& r) { (*r.mutable_inputs())["z"]; }, 3,
       "input size does not match signature: 2!=1 len({x,z}) != len({x}). "
       "Sent extra: {z}. Missing but required: {}."},
      {[](auto& r) { r.mutable_inputs()->clear(); }, 3,
       "input size does not match signature: 0!=1 len({}) != len({x}). "
       "Sent extra: {}. Missing but required: {x}."},
      {[](auto& r) {
         (*r.mutable_inputs())["y"] = r.inputs().at("x");
         r.mutable_inputs()->erase("x");
       },
       3,
       "Signature input alias: x(feed name: serving_default_x:0) not found in "
       "request and no default value provided."},
      {[](auto& r) {
         (*r.mutable_inputs())["x"]
             .mutable_tensor_shape()
             ->mutable_dim(0)
             ->set_size(-5);
       },
       3, "tensor parsing error: x"},
      {[](auto& r) { r.add_output_filter("w"); }, 3,
       "output tensor alias not found in signature: w Outputs expected to be "
       "in the set {twice,y}."},
      {[](auto& r) {
         r.add_output_filter("y");
         r.add_output_filter("y");
       },
       3, "duplicate output tensor alias: y"},
      {[](auto& r) {
         (*r.mutable_inputs())["x"].set_dtype(tensorflow::DT_INT32);
       },
       3, ""},
  };
  for (const Row& row : rows) {
    api::PredictRequest request = Request();
    row.change(request);
    api::PredictResponse response;
    const grpc::Status s = Predict(request, &response);
    EXPECT_EQ(s.error_code(), row.code) << row.text << s.error_message();
    EXPECT_EQ(s.error_message().substr(0, row.text.size()), row.text);
  }
}

// 2.13: tensors that are none.
TEST_F(RpcTest, TensorsThatCannotBeParsed) {
  using Proto = tensorflow::TensorProto;
  const struct {
    const char* what;
    std::function<void(Proto&)> change;
  } rows[] = {
      {"a negative dimension",
       [](Proto& t) {
         t.mutable_tensor_shape()->mutable_dim(0)->set_size(-1);
       }},
      {"a product beyond int64",
       [](Proto& t) {
         for (int i = 0; i < 3; ++i) {
           t.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 40);
         }
       }},
      {"an unknown number of dimensions",
       [](Proto& t) { t.mutable_tensor_shape()->set_unknown_rank(true); }},
      {"content of the wrong length",
       [](Proto& t) {
         t.clear_float_val();
         t.set_tensor_content("seven b");
       }},
      {"no dtype", [](Proto& t) { t.set_dtype(tensorflow::DT_INVALID); }},
      {"an unknown dtype",
       [](Proto& t) { t.set_dtype(static_cast<tensorflow::DataType>(99)); }},
  };
  for (const auto& row : rows) {
    api::PredictRequest request = Request();
    row.change((*request.mutable_inputs())["x"]);
    api::PredictResponse response;
    const grpc::Status s = Predict(request, &response);
    EXPECT_EQ(s.error_code(), 3) << row.what;
    EXPECT_EQ(s.error_message(), "tensor parsing error: x") << row.what;
  }
  // Others do not notice.
  api::PredictResponse response;
  EXPECT_TRUE(Predict(Request(), &response).ok());
}

TEST_F(RpcTest, LongTextsOfErrorsAreCut) {
  api::PredictRequest request = Request();
  request.mutable_model_spec()->set_signature_name(std::string(2000, 's'));
  api::PredictResponse response;
  const std::string text = Predict(request, &response).error_message();
  const std::string whole = "Serving signature key \"" + std::string(2000, 's');
  EXPECT_EQ(text, whole.substr(0, 1024) + "...TRUNCATED");
}

TEST_F(RpcTest, PredictFiltersOutputs) {
  api::PredictRequest request = Request();
  request.add_output_filter("twice");
  api::PredictResponse response;
  ASSERT_TRUE(Predict(request, &response).ok());
  EXPECT_EQ(response.outputs().size(), 1);
  EXPECT_EQ(response.outputs().count("twice"), 1);
}

TEST_F(RpcTest, MetadataHasTheSignatures) {
  api::GetModelMetadataRequest request;
  api::GetModelMetadataResponse response;
  const std::string path =
      "/tensorflow.serving.PredictionService/GetModelMetadata";
  EXPECT_EQ(Ask(path, request, &response).error_message(), "Missing ModelSpec");
  request.mutable_model_spec()->set_name("plain");
  EXPECT_EQ(Ask(path, request, &response).error_message(),
            "GetModelMetadataRequest must specify at least one metadata_field");
  request.add_metadata_field("other");
  EXPECT_EQ(Ask(path, request, &response).error_message(),
            "Metadata field other is not supported");
  request.set_metadata_field(0, "signature_def");
  ASSERT_TRUE(Ask(path, request, &response).ok());
  api::SignatureDefMap map;
  ASSERT_TRUE(response.metadata().at("signature_def").UnpackTo(&map));
  EXPECT_EQ(map.signature_def().at("serving_default").inputs().count("x"), 1);
  EXPECT_EQ(response.model_spec().version().value(), 3);
  EXPECT_EQ(response.model_spec().signature_name(), "");
}

TEST_F(RpcTest, UnknownMethodsAndBytesThatAreNoMessage) {
  api::PredictResponse response;
  EXPECT_EQ(Ask("/no.Such/Method", Request(), &response).error_code(), 12);
  api::ModelSpec wrong;
  wrong.set_name(std::string(3, '\xff'));
  grpc::health::v1::HealthCheckRequest bytes;
  bytes.set_service(std::string("\xff\xff", 2));
  EXPECT_EQ(Predict(api::PredictRequest(), &response).error_code(), 3);
  google::protobuf::FileDescriptorProto other;  // field 1 is a string there
  other.set_name("\x08\xff\xff\xff");
  EXPECT_EQ(
      Ask("/tensorflow.serving.PredictionService/Predict", other, &response)
          .error_code(),
      13);
}

TEST_F(RpcTest, ReloadTakesModelListsAlone) {
  api::ReloadConfigRequest request;
  api::ReloadConfigResponse response;
  const std::string path =
      "/tensorflow.serving.ModelService/HandleReloadConfigRequest";
  EXPECT_EQ(Ask(path, request, &response).error_message(),
            "ServerModelConfig type not supported by "
            "HandleReloadConfigRequest. Only ModelConfigList is currently "
            "supported");
  request.mutable_config()->mutable_model_config_list();
  EXPECT_TRUE(Ask(path, request, &response).ok());
  EXPECT_TRUE(models_.Config().has_model_config_list());
  EXPECT_TRUE(response.has_status());
  EXPECT_EQ(response.metric_size(), 0);
}

TEST_F(RpcTest, ReloadTellsHowMetricsGrew) {
  const char* grows = "/tensorflow/core/graph_runs";
  const char* stays = "/tensorflow/serving/batching_session/wrapped_run_count";
  metrics::GraphRuns()->Increment(5);
  models_.on_reload = [] { metrics::GraphRuns()->Increment(3); };
  api::ReloadConfigRequest request;
  request.mutable_config()->mutable_model_config_list();
  for (const char* name : {grows, "/no/such/metric", stays}) {
    request.add_metric_names(name);
  }
  api::ReloadConfigResponse response;
  ASSERT_TRUE(Ask("/tensorflow.serving.ModelService/HandleReloadConfigRequest",
                  request, &response)
                  .ok());
  ASSERT_EQ(response.metric_size(), 2);
  EXPECT_EQ(response.metric(0).name(), grows);
  EXPECT_EQ(response.metric(0).int64_value_increase(), 3);
  EXPECT_EQ(response.metric(1).name(), stays);
  EXPECT_EQ(response.metric(1).int64_value_increase(), 0);
}

TEST_F(RpcTest, DeadlinesAndCancelsReachTheRun) {
  grpc::health::v1::HealthCheckRequest nothing;
  grpc::health::v1::HealthCheckResponse response;
  grpc::ClientContext timed;
  timed.set_deadline(In(50));
  EXPECT_EQ(Ask("/test.Slow/Wait", nothing, &response, &timed).error_code(), 4);
  grpc::ClientContext cancelled;
  std::thread cancel([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    cancelled.TryCancel();
  });
  EXPECT_EQ(Ask("/test.Slow/Wait", nothing, &response, &cancelled).error_code(),
            1);
  cancel.join();
  // Else this would wait for the runs for ever.
  server_->Stop(In(20'000));
}

TEST_F(RpcTest, HealthFollowsTheModels) {
  using grpc::health::v1::HealthCheckRequest;
  using grpc::health::v1::HealthCheckResponse;
  HealthCheckRequest request;
  HealthCheckResponse response;
  for (const char* name : {"", "ModelService", "PredictionService"}) {
    request.set_service(name);
    ASSERT_TRUE(Ask("/grpc.health.v1.Health/Check", request, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  models_.ready = false;
  ASSERT_TRUE(Ask("/grpc.health.v1.Health/Check", request, &response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  request.set_service("other");
  EXPECT_EQ(
      Ask("/grpc.health.v1.Health/Check", request, &response).error_code(), 5);
}

// A stream of a client's own, one event at a time.
class Stream {
 public:
  Stream(grpc::GenericStub& stub, const std::string& path)
      : stream_(stub.PrepareCall(&context_, path, &queue_)) {
    stream_->StartCall(this);
    Wait();
  }
  ~Stream() { context_.TryCancel(); }
  void Write(const google::protobuf::Message& message) {
    stream_->Write(*MessageBytes(message), this);
    Wait();
  }
  template <typename Message>
  bool Read(Message* message) {
    grpc::ByteBuffer bytes;
    stream_->Read(&bytes, this);
    return Wait() && ParseMessage(&bytes, message).ok();
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->WritesDone(this);
    Wait();
    stream_->Finish(&status, this);
    Wait();
    return status;
  }

 private:
  bool Wait() {
    void* tag;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

TEST_F(RpcTest, WatchStreamsChangesUntilTheServerStops) {
  using grpc::health::v1::HealthCheckResponse;
  Stream watch(*stub_, "/grpc.health.v1.Health/Watch");
  watch.Write(grpc::health::v1::HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(watch.Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  models_.ready = false;
  ASSERT_TRUE(watch.Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  server_->Stop(In(20'000));
  EXPECT_FALSE(watch.Read(&response));
  EXPECT_EQ(watch.Finish().error_code(), 14);
}

TEST_F(RpcTest, ReflectionListsServicesAndTheirFiles) {
  using grpc::reflection::v1alpha::ServerReflectionRequest;
  using grpc::reflection::v1alpha::ServerReflectionResponse;
  Stream chat(*stub_,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ServerReflectionRequest request;
  ServerReflectionResponse response;
  request.set_list_services("*");
  chat.Write(request);
  ASSERT_TRUE(chat.Read(&response));
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  for (const char* name :
       {"grpc.health.v1.Health", "tensorflow.serving.ModelService",
        "tensorflow.serving.PredictionService"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  request.set_file_containing_symbol("tensorflow.serving.PredictionService");
  chat.Write(request);
  ASSERT_TRUE(chat.Read(&response));
  google::protobuf::DescriptorPool pool;
  const auto& files = response.file_descriptor_response();
  for (int i = files.file_descriptor_proto_size() - 1; i >= 0; --i) {
    google::protobuf::FileDescriptorProto file;
    ASSERT_TRUE(file.ParseFromString(files.file_descriptor_proto(i)));
  }
  EXPECT_GT(files.file_descriptor_proto_size(), 5);
  request.set_file_containing_symbol("no.such.Thing");
  chat.Write(request);
  ASSERT_TRUE(chat.Read(&response));
  EXPECT_EQ(response.error_response().error_code(), 5);
  EXPECT_TRUE(chat.Finish().ok());
}

TEST_F(RpcTest, StopFinishesWhatRuns) {
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (true) {
        api::PredictResponse response;
        const grpc::Status s = Predict(Request(), &response);
        // Refused behind the stop, never cut off.
        EXPECT_TRUE(s.ok() || s.error_code() == 14) << s.error_message();
        if (!s.ok()) break;
        ++answered;
      }
    });
  }
  while (answered < 20) std::this_thread::yield();
  server_->Stop(In(20'000));
  for (std::thread& t : clients) t.join();
}

TEST_F(RpcTest, WhatRunsAtTheDeadlineOfAStopIsToldWhy) {
  const grpc::health::v1::HealthCheckRequest nothing;
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([&] {
      grpc::health::v1::HealthCheckResponse unread;
      const grpc::Status s = Ask("/test.Slow/Wait", nothing, &unread);
      EXPECT_EQ(s.error_code(), 14);
      EXPECT_EQ(s.error_message(), "server is shutting down");
    });
  }
  while (waiting_ < 3) std::this_thread::yield();
  server_->Stop(In(100));
  for (std::thread& t : clients) t.join();
}

TEST_F(RpcTest, APortThatIsTakenIsAnError) {
  RpcOptions options;
  options.address = absl::StrCat(":", server_->port());
  const auto second = RpcServer::Start(options, {});
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

}  // namespace
}  // namespace headrace::serving
