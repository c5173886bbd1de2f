#include "serving/start/server.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "absl/strings/str_split.h"
#include "base/thread_pool.h"
#include "serving/manager/config.h"
#include "serving/metrics/monitoring_config.h"
#include "serving/rest/rest_front.h"
#include "serving/rpc/services.h"
#include "serving/start/access_files.h"
#include "serving/start/health_port.h"
#include "serving/start/paths.h"
#include "serving/start/recorder.h"
#include "serving/start/served_models.h"
#include "serving/v2/inference_paths.h"
#include "serving/v2/inference_service.h"

namespace headrace::serving {
namespace {

using Log = std::function<void(const std::string&)>;

// How soon a thread that waits for the end sees it.
constexpr std::chrono::milliseconds kLook{10};

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
  for (const int port : {flags.port, flags.rest_api_port, flags.health_port}) {
    if (port < 0 || port > 65535) {
      return InvalidArgument(port, " is no port");
    }
  }
  if (flags.health_port != 0 && (flags.health_port == flags.port ||
                                 flags.health_port == flags.rest_api_port)) {
    return InvalidArgument("--health_port=", flags.health_port,
                           " is another port of the server");
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

// Where metrics are told; empty: nowhere.
StatusOr<std::string> MetricsPathOf(const Flags& flags) {
  std::string none;
  if (flags.monitoring_config_file.empty()) return none;
  HR_ASSIGN_OR_RETURN(const auto monitoring, metrics::ReadMonitoringConfig(
                                                 flags.monitoring_config_file));
  const auto& prometheus = monitoring.prometheus_config();
  return prometheus.enable() ? prometheus.path() : none;
}

class HeadraceServer : public Server {
 public:
  HeadraceServer(const Flags& flags, Log log)
      : flags_(flags),
        log_(std::move(log)),
        request_logs_(CommaSeparated(flags.saved_model_tags)) {}
  ~HeadraceServer() override { End(std::chrono::system_clock::now()); }

  Status Open() {
    HR_RETURN_IF_ERROR(CheckTogether(flags_));
    SetThreads();
    HR_ASSIGN_OR_RETURN(const ModelServerConfig config, ConfigOf(flags_));
    HR_ASSIGN_OR_RETURN(access_, AccessFiles::Open(flags_, log_));
    HR_ASSIGN_OR_RETURN(metrics_path_, MetricsPathOf(flags_));
    HR_RETURN_IF_ERROR(OpenHealth());
    HR_ASSIGN_OR_RETURN(threads_, RunThreads::Make(flags_));
    models_ = std::make_unique<ModelManager>(
        ManagerOptionsOf(flags_, *threads_, request_logs_, log_));
    HR_RETURN_IF_ERROR(models_->Start(config));
    loaded_ = true;
    inference_.reset(
        new InferenceServer{*models_, [this] { return draining_.load(); }, {}});
    HR_RETURN_IF_ERROR(OpenRest());
    return OpenGrpc();
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

  bool Ready() { return loaded_ && !draining_ && models_->Ready(); }

  Status OpenHealth() {
    if (flags_.health_port == 0) return OkStatus();
    HR_ASSIGN_OR_RETURN(health_,
                        OpenHealthPort(
                            flags_.health_port, [this] { return Ready(); },
                            metrics_path_.empty() ? metrics::kDefaultMetricsPath
                                                  : metrics_path_));
    return OkStatus();
  }

  Status OpenGrpc() {
    RpcMethods methods;
    AddPredictionService(*models_, AnswerOptionsOf(flags_), threads_->workers(),
                         &recorder_, &methods, &request_logs_);
    if (flags_.enable_session_service) {
      AddSessionService(*models_, AnswerOptionsOf(flags_), threads_->workers(),
                        &recorder_, &request_logs_, &methods);
    }
    AddModelService(*models_, threads_->workers(), &methods);
    AddHealthService(
        [this] { return Ready(); },
        {"ModelService", "PredictionService", "inference.GRPCInferenceService"},
        &methods);
    AddInferenceService(inference_, threads_->workers(), &recorder_, &methods);
    if (flags_.enable_grpc_reflection) AddReflectionService(&methods);
    RpcOptions options;
    if (flags_.port > 0) options.address = absl::StrCat(":", flags_.port);
    options.socket_path = flags_.grpc_socket_path;
    access_->Guard(&options);
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
    options.logs = &request_logs_;
    access_->Guard(&options);
    if (!metrics_path_.empty()) {
      options.extra.push_back(MetricsPath(metrics_path_));
    }
    options.extra.push_back(HealthPaths([this] { return Ready(); }));
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
    std::atomic<bool> ended{false};
    // What still waits for a batch at the deadline does not begin to run.
    std::thread late([&] {
      while (!ended && std::chrono::system_clock::now() < deadline) {
        std::this_thread::sleep_for(kLook);
      }
      if (!ended && threads_) {
        threads_->FailWaiting(Unavailable("server is shutting down"));
      }
    });
    if (rpc_) rpc_->Stop(deadline);
    rest.join();
    ended = true;
    late.join();
    if (models_) models_->Stop();
  }

  const Flags flags_;
  const Log log_;
  std::string metrics_path_;  // empty: none
  std::atomic<bool> loaded_{false}, draining_{false};
  // Declared in the order in which they need each other.
  GrpcRecorder recorder_;
  RequestLogs request_logs_;
  std::unique_ptr<RunThreads> threads_;
  std::unique_ptr<ModelManager> models_;
  std::unique_ptr<AccessFiles> access_;
  std::shared_ptr<InferenceServer> inference_;
  std::unique_ptr<RpcServer> rpc_;
  std::unique_ptr<RestFront> rest_;
  // Answers until all else has ended.
  std::unique_ptr<HttpServer> health_;
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(const Flags& flags, Log log) {
  auto server = std::make_unique<HeadraceServer>(flags, std::move(log));
  HR_RETURN_IF_ERROR(server->Open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace headrace::serving
