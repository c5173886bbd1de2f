#include "serving/start/server.h"

#include <grpcpp/security/server_credentials.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_split.h"
#include "base/thread_pool.h"
#include "serving/manager/config.h"
#include "serving/metrics/monitoring_config.h"
#include "serving/proto_file.h"
#include "serving/rest/rest_front.h"
#include "serving/rpc/services.h"
#include "serving/start/paths.h"
#include "serving/start/recorder.h"
#include "serving/start/served_models.h"
#include "serving/v2/inference_paths.h"
#include "serving/v2/inference_service.h"
#include "tensorflow_serving/config/ssl_config.pb.h"

namespace headrace::serving {
namespace {

using Log = std::function<void(const std::string&)>;

StatusOr<ModelServerConfig> ConfigOf(const Flags& flags) {
  if (!flags.model_config_file.empty()) {
    return ReadModelServerConfig(flags.model_config_file);
  }
  if (flags.model_base_path.empty()) {
    return InvalidArgument(
        "Both server_options.model_base_path and "
        "server_options.model_config_file are empty!");
  }
  return ConfigOfOneModel(flags.model_name, flags.model_base_path);
}

Status CheckTogether(const Flags& flags) {
  if (flags.port == 0 && flags.grpc_socket_path.empty()) {
    return InvalidArgument(
        "At least one of server_options.grpc_port or "
        "server_options.grpc_socket_path must be set.");
  }
  for (const int port : {flags.port, flags.rest_api_port}) {
    if (port < 0 || port > 65535) {
      return InvalidArgument(port, " is no port");
    }
  }
  if (flags.tensorflow_session_parallelism > 0 &&
      flags.tensorflow_intra_op_parallelism > 0 &&
      flags.tensorflow_inter_op_parallelism > 0) {
    return InvalidArgument(
        "Either configure tensorflow_session_parallelism, or both of "
        "tensorflow_intra_op_parallelism and tensorflow_inter_op_parallelism, "
        "not all three");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const std::string& path) {
  std::shared_ptr<grpc::ServerCredentials> none;
  if (path.empty()) return none;
  tensorflow::serving::SSLConfig config;
  HR_RETURN_IF_ERROR(ReadProtoFile(path, &config));
  grpc::SslServerCredentialsOptions options(
      config.client_verify()
          ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
          : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back(
      {config.server_key(), config.server_cert()});
  options.pem_root_certs = config.custom_ca();
  return grpc::SslServerCredentials(options);
}

class HeadraceServer : public Server {
 public:
  HeadraceServer(const Flags& flags, Log log)
      : flags_(flags), log_(std::move(log)) {}
  ~HeadraceServer() override { End(std::chrono::system_clock::now()); }

  Status Open() {
    HR_RETURN_IF_ERROR(CheckTogether(flags_));
    SetThreads();
    HR_ASSIGN_OR_RETURN(const ModelServerConfig config, ConfigOf(flags_));
    HR_ASSIGN_OR_RETURN(auto credentials,
                        CredentialsOf(flags_.ssl_config_file));
    HR_ASSIGN_OR_RETURN(threads_, RunThreads::Make(flags_));
    models_ = std::make_unique<ModelManager>(
        ManagerOptionsOf(flags_, *threads_, log_));
    HR_RETURN_IF_ERROR(models_->Start(config));
    inference_.reset(
        new InferenceServer{*models_, [this] { return draining_.load(); }, {}});
    HR_RETURN_IF_ERROR(OpenRest());
    return OpenGrpc(std::move(credentials));
  }

  int grpc_port() const override { return rpc_ ? rpc_->port() : 0; }
  int rest_port() const override { return rest_ ? rest_->port() : 0; }

  void Drain() override {
    draining_ = true;
    std::this_thread::sleep_for(
        std::chrono::seconds(flags_.drain_delay_seconds));
    End(std::chrono::system_clock::now() +
        std::chrono::seconds(flags_.drain_timeout_seconds));
  }

 private:
  void SetThreads() {
    const int n = flags_.tensorflow_session_parallelism > 0
                      ? flags_.tensorflow_session_parallelism
                      : flags_.tensorflow_intra_op_parallelism;
    if (n > 0) SetNumThreads(n);
  }

  Status OpenGrpc(std::shared_ptr<grpc::ServerCredentials> credentials) {
    RpcMethods methods;
    AddPredictionService(*models_, AnswerOptionsOf(flags_), threads_->workers(),
                         &recorder_, &methods);
    AddModelService(*models_, threads_->workers(), &methods);
    AddHealthService(
        [this] { return !draining_ && models_->Ready(); },
        {"ModelService", "PredictionService", "inference.GRPCInferenceService"},
        &methods);
    AddInferenceService(inference_, threads_->workers(), &recorder_, &methods);
    if (flags_.enable_grpc_reflection) AddReflectionService(&methods);
    RpcOptions options;
    options.port = flags_.port;
    options.socket_path = flags_.grpc_socket_path;
    options.credentials = std::move(credentials);
    for (const std::string& pair :
         CommaSeparated(flags_.grpc_channel_arguments)) {
      const std::pair<std::string, std::string> split =
          absl::StrSplit(pair, absl::MaxSplits('=', 1));
      options.channel_arguments.push_back(split);
    }
    HR_ASSIGN_OR_RETURN(rpc_, RpcServer::Start(options, std::move(methods)));
    log_(absl::StrCat("Running gRPC ModelServer at 0.0.0.0:", rpc_->port(),
                      " ..."));
    return OkStatus();
  }

  Status OpenRest() {
    if (flags_.rest_api_port == 0) return OkStatus();
    if (flags_.rest_api_port == flags_.port) {
      log_(absl::StrCat(
          "server_options.http_port cannot be same as grpc_port. Please use a "
          "different port for HTTP/REST API. Skipped exporting HTTP/REST "
          "API."));
      return OkStatus();
    }
    RestOptions options;
    options.port = flags_.rest_api_port;
    options.threads = flags_.rest_api_num_threads;
    options.timeout_ms = flags_.rest_api_timeout_in_ms;
    options.cors = flags_.rest_api_enable_cors_support;
    options.max_body_bytes = flags_.rest_api_max_body_bytes;
    options.workers = &threads_->workers();
    options.answered = &RecordRest;
    if (!flags_.monitoring_config_file.empty()) {
      HR_ASSIGN_OR_RETURN(
          const auto monitoring,
          metrics::ReadMonitoringConfig(flags_.monitoring_config_file));
      if (monitoring.prometheus_config().enable()) {
        options.extra.push_back(
            MetricsPath(monitoring.prometheus_config().path()));
      }
    }
    options.extra.push_back(
        HealthPaths([this] { return !draining_ && models_->Ready(); }));
    InferencePathOptions paths;
    paths.timeout_ms = flags_.rest_api_timeout_in_ms;
    paths.answered = &RecordRest;
    options.extra.push_back(
        InferencePaths(inference_, threads_->workers(), std::move(paths)));
    options.extra.push_back(ConfigPath(*models_, threads_->workers()));
    HR_ASSIGN_OR_RETURN(
        rest_, RestFront::Start(*models_, AnswerOptionsOf(flags_), options));
    log_(absl::StrCat("Exporting HTTP/REST API at:localhost:", rest_->port(),
                      " ..."));
    return OkStatus();
  }

  void End(std::chrono::system_clock::time_point deadline) {
    draining_ = true;
    const auto left = deadline - std::chrono::system_clock::now();
    // Both at once, within the same time.
    std::thread rest([this, left] {
      if (!rest_) return;
      rest_->Drain(std::chrono::steady_clock::now() + left);
      rest_->Stop();
    });
    if (rpc_) rpc_->Stop(deadline);
    rest.join();
    if (models_) models_->Stop();
  }

  const Flags flags_;
  const Log log_;
  std::atomic<bool> draining_{false};
  // Declared in the order in which they need each other.
  GrpcRecorder recorder_;
  std::unique_ptr<RunThreads> threads_;
  std::unique_ptr<ModelManager> models_;
  std::shared_ptr<InferenceServer> inference_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<RestFront> rest_;
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(const Flags& flags, Log log) {
  auto server = std::make_unique<HeadraceServer>(flags, std::move(log));
  HR_RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace headrace::serving
