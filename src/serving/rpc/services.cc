#include "serving/rpc/services.h"

#include "grpc/health/v1/health.pb.h"
#include "serving/rpc/messages.h"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace headrace::serving {
namespace {

namespace api = tensorflow::serving;

constexpr char kPrediction[] = "/tensorflow.serving.PredictionService/";
constexpr char kModel[] = "/tensorflow.serving.ModelService/";
constexpr char kHealth[] = "/grpc.health.v1.Health/";

Status ReloadFrom(Models& models, const api::ReloadConfigRequest& request,
                  api::ReloadConfigResponse* response) {
  if (!request.config().has_model_config_list()) {
    return InvalidArgument(
        "ServerModelConfig type not supported by HandleReloadConfigRequest. "
        "Only ModelConfigList is currently supported");
  }
  HR_RETURN_IF_ERROR(models.Reload(request.config()));
  response->mutable_status();  // OK
  return OkStatus();
}

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::health::v1::HealthListRequest;
using grpc::health::v1::HealthListResponse;

struct HealthState {
  std::function<bool()> ready;
  std::vector<std::string> services;

  bool Knows(const std::string& name) const {
    return std::find(services.begin(), services.end(), name) != services.end();
  }
  HealthCheckResponse::ServingStatus Now() const {
    return ready() ? HealthCheckResponse::SERVING
                   : HealthCheckResponse::NOT_SERVING;
  }
};

}  // namespace

void AddPredictionService(Models& models, const AnswerOptions& options,
                          RpcMethods* methods) {
  const auto add = [&](StringView name, RpcMethod method) {
    methods->emplace(absl::StrCat(kPrediction, name), std::move(method));
  };
  const auto of = [&models, options](auto answer) {
    return [&models, options, answer](CallPtr call, const auto& request,
                                      auto done) {
      answer(models, options, std::move(call), request, std::move(done));
    };
  };
  add("Predict",
      UnaryMethod<api::PredictRequest, api::PredictResponse>(of(&Predict)));
  add("Classify",
      UnaryMethod<api::ClassificationRequest, api::ClassificationResponse>(
          of(&Classify)));
  add("Regress", UnaryMethod<api::RegressionRequest, api::RegressionResponse>(
                     of(&Regress)));
  add("MultiInference",
      UnaryMethod<api::MultiInferenceRequest, api::MultiInferenceResponse>(
          of(&MultiInference)));
  add("GetModelMetadata",
      PlainMethod<api::GetModelMetadataRequest, api::GetModelMetadataResponse>(
          [&models](const auto& request, auto* response) {
            return GetModelMetadata(models, request, response);
          }));
}

void AddModelService(Models& models, Workers& workers, RpcMethods* methods) {
  methods->emplace(
      absl::StrCat(kModel, "GetModelStatus"),
      PlainMethod<api::GetModelStatusRequest, api::GetModelStatusResponse>(
          [&models](const auto& request, auto* response) -> Status {
            if (!request.has_model_spec()) {
              return InvalidArgument("Missing ModelSpec");
            }
            return models.StatusOf(request.model_spec(), response);
          }));
  methods->emplace(
      absl::StrCat(kModel, "HandleReloadConfigRequest"),
      UnaryMethod<api::ReloadConfigRequest, api::ReloadConfigResponse>(
          [&models, &workers](CallPtr, const api::ReloadConfigRequest& request,
                              Done<api::ReloadConfigResponse> done) {
            workers.Run([&models, request, done = std::move(done)] {
              api::ReloadConfigResponse response;
              const Status s = Guarded("a reload", [&] {
                return ReloadFrom(models, request, &response);
              });
              if (!s.ok()) return done(s);
              done(std::move(response));
            });
          }));
}

void AddHealthService(std::function<bool()> ready,
                      std::vector<std::string> services, RpcMethods* methods) {
  auto state = std::make_shared<HealthState>(
      HealthState{std::move(ready), std::move(services)});
  state->services.push_back("");
  methods->emplace(absl::StrCat(kHealth, "Check"),
                   PlainMethod<HealthCheckRequest, HealthCheckResponse>(
                       [state](const auto& request, auto* response) -> Status {
                         if (!state->Knows(request.service())) {
                           return NotFound("unknown service ",
                                           request.service());
                         }
                         response->set_status(state->Now());
                         return OkStatus();
                       }));
  methods->emplace(
      absl::StrCat(kHealth, "List"),
      PlainMethod<HealthListRequest, HealthListResponse>(
          [state](const auto&, auto* response) {
            for (const std::string& name : state->services) {
              (*response->mutable_statuses())[name].set_status(state->Now());
            }
            return OkStatus();
          }));
  RpcMethod watch;
  watch.watch = [state](
                    grpc::ByteBuffer* bytes,
                    int64_t* seen) -> StatusOr<std::vector<grpc::ByteBuffer>> {
    HealthCheckRequest request;
    HR_RETURN_IF_ERROR(ParseMessage(bytes, &request));
    const auto now = state->Knows(request.service())
                         ? state->Now()
                         : HealthCheckResponse::SERVICE_UNKNOWN;
    std::vector<grpc::ByteBuffer> news;
    if (*seen == now) return news;
    *seen = now;
    HealthCheckResponse response;
    response.set_status(now);
    HR_ASSIGN_OR_RETURN(news.emplace_back(), MessageBytes(response));
    return news;
  };
  methods->emplace(absl::StrCat(kHealth, "Watch"), std::move(watch));
}

}  // namespace headrace::serving
