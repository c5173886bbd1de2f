#include "serving/rpc/services.h"

#include "grpc/health/v1/health.pb.h"
#include "serving/answer/specs.h"
#include "serving/metrics/metrics.h"
#include "serving/request_log/logged.h"
#include "serving/rpc/messages.h"
#include "tensorflow_serving/apis/model_management.pb.h"

namespace headrace::serving {
namespace {

namespace api = tensorflow::serving;

constexpr char kPrediction[] = "/tensorflow.serving.PredictionService/";
constexpr char kModel[] = "/tensorflow.serving.ModelService/";
constexpr char kSession[] = "/tensorflow.serving.SessionService/SessionRun";
constexpr char kHealth[] = "/grpc.health.v1.Health/";

Status ReloadFrom(Models& models, const api::ReloadConfigRequest& request,
                  api::ReloadConfigResponse* response) {
  if (!request.config().has_model_config_list()) {
    return InvalidArgument(
        "ServerModelConfig type not supported by HandleReloadConfigRequest. "
        "Only ModelConfigList is currently supported");
  }
  std::vector<std::optional<int64_t>> before;
  for (const std::string& name : request.metric_names()) {
    before.push_back(metrics::FirstCell(name));
  }
  HR_RETURN_IF_ERROR(models.Reload(request.config()));
  response->mutable_status();  // OK
  for (int i = 0; i < request.metric_names_size(); ++i) {
    if (!before[i]) continue;  // there is no such metric
    const std::string& name = request.metric_names(i);
    auto* metric = response->add_metric();
    metric->set_name(name);
    metric->set_int64_value_increase(metrics::FirstCell(name).value_or(0) -
                                     *before[i]);
  }
  return OkStatus();
}

// What answers requests.
struct Prediction {
  Models& models;
  const AnswerOptions options;
  Workers& workers;
  AnswerObserver* const observer;
  RequestLogs* const logs;
};

// Calls f(call, request) here, or on a thread that may wait for the model.
template <typename Request, typename F>
void Where(const Prediction& to, const ModelSpec& spec, CallPtr call,
           const Request& request, F f) {
  if (!to.models.FindWaits(spec)) return f(std::move(call), request);
  to.workers.Run([call, request, f] {
    const StopScope scope(&call->stop());
    f(call, request);
  });
}

// Has the observer told of the answer.
template <typename Response>
Done<Response> Observed(AnswerObserver* observer, StringView method,
                        const ModelSpec& spec, Done<Response> done) {
  if (observer == nullptr) return done;
  observer->Began(spec.name());
  return [observer, method, spec, done = std::move(done),
          start = Call::Clock::now()](StatusOr<Response> response) {
    const ModelSpec& used = response.ok() ? SpecOf(*response) : spec;
    observer->Ended(spec.name(), {method, used, response.status(),
                                  Call::Clock::now() - start});
    done(std::move(response));
  };
}

template <typename Request, typename Response, typename F>
RpcMethod AnsweredBy(const Prediction& to, StringView name, F answer) {
  return UnaryMethod<Request, Response>(
      [to, name, answer](CallPtr call, const Request& request,
                         Done<Response> done) {
        const ModelSpec& spec = SpecOf(request);
        Where(to, spec, std::move(call), request,
              [to, answer,
               done = Observed(to.observer, name, spec,
                               Logged<Request, Response>(to.logs, request,
                                                         std::move(done)))](
                  CallPtr asked, const Request& given) {
                answer(to.models, to.options, std::move(asked), given, done);
              });
      });
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
                          Workers& workers, AnswerObserver* observer,
                          RpcMethods* methods, RequestLogs* logs) {
  const Prediction to{models, options, workers, observer, logs};
  const auto add = [&](StringView name, RpcMethod method) {
    methods->emplace(absl::StrCat(kPrediction, name), std::move(method));
  };
  add("Predict", AnsweredBy<api::PredictRequest, api::PredictResponse>(
                     to, "Predict", &Predict));
  add("Classify",
      AnsweredBy<api::ClassificationRequest, api::ClassificationResponse>(
          to, "Classify", &Classify));
  add("Regress", AnsweredBy<api::RegressionRequest, api::RegressionResponse>(
                     to, "Regress", &Regress));
  add("MultiInference",
      AnsweredBy<api::MultiInferenceRequest, api::MultiInferenceResponse>(
          to, "MultiInference", &MultiInference));
  add("GetModelMetadata",
      UnaryMethod<api::GetModelMetadataRequest, api::GetModelMetadataResponse>(
          [to](CallPtr call, const api::GetModelMetadataRequest& request,
               Done<api::GetModelMetadataResponse> done) {
            Where(to, request.model_spec(), call, request,
                  [to, done](CallPtr, const auto& asked) {
                    api::GetModelMetadataResponse response;
                    const Status s = Guarded("a request", [&] {
                      return GetModelMetadata(to.models, asked, &response);
                    });
                    if (!s.ok()) return done(s);
                    done(std::move(response));
                  });
          }));
}

void AddSessionService(Models& models, const AnswerOptions& options,
                       Workers& workers, AnswerObserver* observer,
                       RequestLogs* logs, RpcMethods* methods) {
  methods->emplace(
      kSession,
      UnaryMethod<api::SessionRunRequest, api::SessionRunResponse>(
          [=, &models, &workers](CallPtr call,
                                 const api::SessionRunRequest& request,
                                 Done<api::SessionRunResponse> done) {
            done = Logged(logs, request, std::move(done));
            const auto run = [=, &models, observer = observer] {
              const StopScope scope(&call->stop());
              Observed(observer, "SessionRun", request.model_spec(),
                       done)(SessionRun(models, options, call, request));
            };
            workers.Run(run);
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
  watch.watch =
      [state](grpc::ByteBuffer* bytes,
              int64_t* seen) -> StatusOr<std::optional<grpc::ByteBuffer>> {
    HealthCheckRequest request;
    HR_RETURN_IF_ERROR(ParseMessage(bytes, &request));
    const auto now = state->Knows(request.service())
                         ? state->Now()
                         : HealthCheckResponse::SERVICE_UNKNOWN;
    if (*seen == now) return std::nullopt;
    *seen = now;
    HealthCheckResponse response;
    response.set_status(now);
    return MessageBytes(response);
  };
  methods->emplace(absl::StrCat(kHealth, "Watch"), std::move(watch));
}

}  // namespace headrace::serving
