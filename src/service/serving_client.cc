// include/headrace/serving_client.h
#include "headrace/serving_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <random>
#include <thread>

#include "cc/access.h"
#include "grpc/health/v1/health.pb.h"
#include "service/served_messages.h"

namespace headrace::tf {
namespace {

namespace api = tensorflow::serving;
using Clock = std::chrono::system_clock;  // gRPC's deadlines are of this one

constexpr char kPrediction[] = "/tensorflow.serving.PredictionService/";
constexpr char kModel[] = "/tensorflow.serving.ModelService/";
// Before the second try, and at most before one; doubled in between.
constexpr std::chrono::milliseconds kFirstWait(50), kLongestWait(2000);

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(
    const ServingClientOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials(
      {options.ca_certificates, options.key, options.certificate});
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address,
                                         const ServingClientOptions& options) {
  if (!options.tls &&
      !(options.ca_certificates + options.key + options.certificate).empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "certificates are given, but not `tls`");
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Soon after a server is back it is asked again: gRPC's own start is a
  // second.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(address, CredentialsOf(options), arguments);
}

Error ErrorOf(const grpc::Status& status) {
  const int code = static_cast<int>(status.error_code());
  return Error(code >= 1 && code <= 16 ? static_cast<ErrorCode>(code)
                                       : ErrorCode::kUnknown,
               status.error_message());
}

// Half to all of it, so that not all clients come back at once.
std::chrono::nanoseconds Spread(std::chrono::nanoseconds wait) {
  thread_local std::minstd_rand random(std::random_device{}());
  return std::chrono::nanoseconds(std::uniform_int_distribution<int64_t>(
      wait.count() / 2, wait.count())(random));
}

}  // namespace

struct ServingClient::State {
  ServingClientOptions options;
  std::shared_ptr<grpc::Channel> channel;

  Clock::time_point Deadline() const {
    const auto limit = std::chrono::hours(24 * 365);
    if (options.timeout.count() <= 0 || options.timeout > limit) {
      return Clock::time_point::max();
    }
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(options.timeout);
  }

  template <typename Response, typename Request>
  grpc::Status TryOnce(const std::string& path, const Request& request,
                       Clock::time_point deadline, Response* response) const {
    grpc::ClientContext context;
    if (deadline != Clock::time_point::max()) context.set_deadline(deadline);
    if (!options.token.empty()) {
      context.AddMetadata("authorization", "Bearer " + options.token);
    }
    const grpc::internal::RpcMethod method(
        path.c_str(), grpc::internal::RpcMethod::NORMAL_RPC, channel);
    return grpc::internal::BlockingUnaryCall<Request, Response>(
        channel.get(), method, &context, request, response);
  }

  template <typename Response, typename Request>
  Response Ask(const std::string& path, const Request& request) const {
    const Clock::time_point deadline = Deadline();
    std::chrono::nanoseconds wait = kFirstWait;
    for (int tried = 0;; ++tried) {
      Response response;
      const grpc::Status status = TryOnce(path, request, deadline, &response);
      if (status.ok()) return response;
      const auto next = Spread(wait);
      const bool again = status.error_code() == grpc::UNAVAILABLE &&
                         tried < options.retries &&
                         Clock::now() + next < deadline;
      if (!again) throw ErrorOf(status);
      std::this_thread::sleep_for(next);
      wait = std::min<std::chrono::nanoseconds>(2 * wait, kLongestWait);
    }
  }

  template <typename Response, typename Request>
  Response AskOfExamples(const char* method, const ServedModel& model,
                         const std::vector<ServedExample>& examples) const {
    Request request;
    internal::FillSpec(model, request.mutable_model_spec());
    internal::FillInput(examples, request.mutable_input());
    return Ask<Response>(absl::StrCat(kPrediction, method), request);
  }
};

ServingClient::ServingClient(const std::string& address,
                             const ServingClientOptions& options)
    : state_(new State{options, ChannelTo(address, options)}) {}
ServingClient::~ServingClient() = default;
ServingClient::ServingClient(ServingClient&&) noexcept = default;
ServingClient& ServingClient::operator=(ServingClient&&) noexcept = default;

ServedPrediction ServingClient::Predict(
    const ServedModel& model, const std::map<std::string, Tensor>& inputs,
    const std::vector<std::string>& outputs) const {
  return internal::PredictionOf(state_->Ask<api::PredictResponse>(
      absl::StrCat(kPrediction, "Predict"),
      internal::PredictRequestOf(model, inputs, outputs)));
}

std::vector<std::vector<ServedClass>> ServingClient::Classify(
    const ServedModel& model,
    const std::vector<ServedExample>& examples) const {
  const auto response = state_->AskOfExamples<api::ClassificationResponse,
                                              api::ClassificationRequest>(
      "Classify", model, examples);
  std::vector<std::vector<ServedClass>> rows;
  for (const auto& row : response.result().classifications()) {
    auto& classes = rows.emplace_back();
    for (const auto& c : row.classes())
      classes.push_back({c.label(), c.score()});
  }
  return rows;
}

std::vector<float> ServingClient::Regress(
    const ServedModel& model,
    const std::vector<ServedExample>& examples) const {
  const auto response =
      state_->AskOfExamples<api::RegressionResponse, api::RegressionRequest>(
          "Regress", model, examples);
  std::vector<float> values;
  for (const auto& row : response.result().regressions()) {
    values.push_back(row.value());
  }
  return values;
}

std::map<std::string, ServedSignature> ServingClient::Metadata(
    const ServedModel& model) const {
  api::GetModelMetadataRequest request;
  internal::FillSpec(model, request.mutable_model_spec());
  request.add_metadata_field("signature_def");
  return internal::SignaturesOf(state_->Ask<api::GetModelMetadataResponse>(
      absl::StrCat(kPrediction, "GetModelMetadata"), request));
}

std::vector<ServedVersion> ServingClient::Status(
    const ServedModel& model) const {
  api::GetModelStatusRequest request;
  internal::FillSpec(model, request.mutable_model_spec());
  return internal::VersionsOf(state_->Ask<api::GetModelStatusResponse>(
      absl::StrCat(kModel, "GetModelStatus"), request));
}

bool ServingClient::Ready() const {
  grpc::health::v1::HealthCheckResponse response;
  const grpc::Status status = state_->TryOnce(
      "/grpc.health.v1.Health/Check", grpc::health::v1::HealthCheckRequest(),
      state_->Deadline(), &response);
  if (status.error_code() == grpc::UNAVAILABLE) return false;
  if (!status.ok()) throw ErrorOf(status);
  return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

bool ServingClient::Ready(const ServedModel& model) const {
  api::GetModelStatusRequest request;
  internal::FillSpec(model, request.mutable_model_spec());
  api::GetModelStatusResponse response;
  const grpc::Status status =
      state_->TryOnce(absl::StrCat(kModel, "GetModelStatus"), request,
                      state_->Deadline(), &response);
  if (status.error_code() == grpc::UNAVAILABLE ||
      status.error_code() == grpc::NOT_FOUND) {
    return false;
  }
  if (!status.ok()) throw ErrorOf(status);
  return std::any_of(response.model_version_status().begin(),
                     response.model_version_status().end(),
                     [](const api::ModelVersionStatus& s) {
                       return s.state() == api::ModelVersionStatus::AVAILABLE;
                     });
}

}  // namespace headrace::tf
