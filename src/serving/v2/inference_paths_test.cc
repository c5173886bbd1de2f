#include "serving/v2/inference_paths.h"

#include <gtest/gtest.h>

#include "inference/grpc_service.pb.h"
#include "serving/fixed_models.h"
#include "serving/http/test_client.h"
#include "serving/rpc/messages.h"
#include "serving/v2/inference_service.h"

namespace headrace::serving {
namespace {

// A call that nobody cancels, and how it ended.
struct CallHere : RpcCall {
  Clock::time_point deadline() const override {
    return Clock::time_point::max();
  }
  const Metadata& metadata() override { return none; }
  const std::string& peer() override { return nobody; }
  void OnCancel(std::function<void()>) override {}
  void Send(const grpc::ByteBuffer&, std::function<void(bool)> sent) override {
    sent(true);
  }
  void Finish(RpcEnd e) override { end = std::move(e); }

  Metadata none;
  std::string nobody;
  std::optional<RpcEnd> end;
};

// The golden model "plain", version 3, behind both fronts.
class V2Fronts : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded =
        Servable::Load({"plain", 3}, HR_GOLDEN_DIR "/saved_models/plain", {});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    models_.Add(*loaded);
    ModelServerConfig config;
    config.mutable_model_config_list()->add_config()->set_name("plain");
    config.mutable_model_config_list()->add_config()->set_name("gone");
    ASSERT_TRUE(models_.Reload(config).ok());
    server_.reset(
        new InferenceServer{models_, [this] { return draining_.load(); }});
    InferencePathOptions paths;
    paths.answered = [this](const Answered& a) {
      MutexLock lock(mutex_);
      answered_ = absl::StrCat(a.method, " ", a.spec.name(), " ",
                               a.spec.version().value(), " ",
                               static_cast<int>(a.status.code()));
    };
    RestOptions options;
    options.threads = 1;
    options.extra.push_back(InferencePaths(server_, workers_, paths));
    auto front = RestFront::Start(models_, {}, options);
    ASSERT_TRUE(front.ok()) << front.status();
    front_ = *std::move(front);
    AddInferenceService(server_, workers_, nullptr, &methods_);
  }

  TestClient::Answer Get(StringView path) {
    return TestClient(front_->port())
        .Ask(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  TestClient::Answer Post(StringView path, StringView body,
                          StringView headers = "") {
    return TestClient(front_->port()).Ask(PostText(path, body, headers));
  }
  // The answer of a method of gRPC, which comes in this thread.
  template <typename Response>
  StatusOr<Response> Rpc(StringView name,
                         const google::protobuf::Message& request) {
    grpc::ByteBuffer bytes = *MessageBytes(request);
    StatusOr<Response> response = Internal("no answer");
    const auto method =
        methods_.find(absl::StrCat("/inference.GRPCInferenceService/", name));
    EXPECT_NE(method, methods_.end()) << name;
    const auto call = std::make_shared<CallHere>();
    method->second.serve(call, &bytes);
    if (!call->end) return response;
    if (!call->end->status.ok()) return call->end->status;
    Response parsed;
    EXPECT_TRUE(ParseMessage(&call->end->body, &parsed).ok());
    return parsed;
  }

  Workers workers_{2};
  FixedModels models_;
  std::atomic<bool> draining_{false};
  std::shared_ptr<InferenceServer> server_;
  Mutex mutex_;
  std::string answered_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RestFront> front_;
  RpcMethods methods_;
};

constexpr char kInferX[] =
    "{\"inputs\":[{\"name\":\"x\",\"shape\":[2],\"datatype\":\"FP32\","
    "\"data\":[1,2]}],\"outputs\":[{\"name\":\"twice\"}]}";

TEST_F(V2Fronts, RestInfersAndTellsOfIt) {
  const auto answer = Post("/v2/models/plain/infer", kInferX);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.body,
            "{\"model_name\":\"plain\",\"model_version\":\"3\",\"outputs\":[{"
            "\"name\":\"twice\",\"datatype\":\"FP32\",\"shape\":[2],\"data\":["
            "2.0,4.0]}]}");
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(answered_, "infer plain 3 0");
  }
  EXPECT_EQ(Post("/v2/models/none/infer", kInferX).status, 404);
  {
    MutexLock lock(mutex_);
    EXPECT_EQ(answered_, "infer none 0 5");
  }
  EXPECT_NE(Get("/v2/models/plain/stats").body.find("\"inference_count\":1,"),
            std::string::npos);
  EXPECT_EQ(Post("/v2/models/plain/infer", "{}",
                 "Inference-Header-Content-Length: 9\r\n")
                .status,
            400);
}

TEST_F(V2Fronts, ReadinessEndsWithADrain) {
  EXPECT_EQ(Get("/v2/models/plain/ready").status, 200);
  EXPECT_EQ(Get("/v2/models/none/ready").status, 503);
  EXPECT_TRUE(Rpc<inference::ServerReadyResponse>(
                  "ServerReady", inference::ServerReadyRequest())
                  ->ready());
  draining_ = true;
  EXPECT_EQ(Get("/v2/models/plain/ready").status, 503);
  EXPECT_FALSE(Rpc<inference::ServerReadyResponse>(
                   "ServerReady", inference::ServerReadyRequest())
                   ->ready());
}

TEST_F(V2Fronts, TheIndexNamesAllModelsOfTheConfig) {
  EXPECT_EQ(Post("/v2/repository/index", "").body,
            "[{\"name\":\"plain\",\"version\":\"3\",\"state\":\"READY\","
            "\"reason\":\"\"},{\"name\":\"gone\",\"version\":\"\",\"state\":"
            "\"UNAVAILABLE\",\"reason\":\"Could not find any versions of model "
            "gone\"}]");
  inference::RepositoryIndexRequest request;
  request.set_ready(true);
  const auto ready =
      Rpc<inference::RepositoryIndexResponse>("RepositoryIndex", request);
  ASSERT_TRUE(ready.ok()) << ready.status();
  ASSERT_EQ(ready->models_size(), 1);
  EXPECT_EQ(ready->models(0).name(), "plain");
  request.set_repository_name("r");
  EXPECT_EQ(Rpc<inference::RepositoryIndexResponse>("RepositoryIndex", request)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Post("/v2/repository/models/plain/load",
                 "{\"parameters\":{\"config\":\"{}\"}}")
                .status,
            400);
}

}  // namespace
}  // namespace headrace::serving
