// The flags of the server: those of tensorflow_model_server under their names,
// and ours. One table gives parsing, help and the docs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace::serving {

struct Flags {
  // --- The ports.
  int32_t port = 8500;
  std::string grpc_socket_path;
  std::string grpc_channel_arguments;
  int32_t grpc_max_threads = 0;  // 0: four for each processor
  int32_t rest_api_port = 0;
  int32_t rest_api_num_threads = 0;  // 0: one for each processor
  int32_t rest_api_timeout_in_ms = 30000;
  bool rest_api_enable_cors_support = false;
  int64_t rest_api_max_body_bytes = int64_t{512} << 20;
  std::string ssl_config_file;
  std::string rest_api_ssl_config_file;
  std::string auth_token_file;
  int32_t health_port = 0;
  bool enable_grpc_healthcheck_service = false;
  bool enable_grpc_reflection = true;
  bool enable_session_service = false;
  // --- The models.
  std::string model_name = "default";
  std::string model_base_path;
  std::string model_config_file;
  int32_t model_config_file_poll_wait_seconds = 0;
  int32_t file_system_poll_wait_seconds = 1;
  std::string saved_model_tags = "serve";
  bool allow_version_labels_for_unavailable_models = false;
  bool enable_signature_method_name_check = false;
  int32_t max_num_load_retries = 5;
  int64_t load_retry_interval_micros = 60'000'000;
  int32_t num_load_threads = 0;
  int32_t num_unload_threads = 0;
  bool flush_filesystem_caches = true;
  bool enable_model_warmup = true;
  int32_t num_request_iterations_for_warmup = 0;  // 0: 1
  bool lazy_load_models = false;
  int64_t total_model_memory_limit_bytes = 0;  // 0: none
  std::string pinned_models;
  bool start_with_failed_models = false;
  bool safe_mode = false;
  std::string safe_mode_allow_ops;
  int64_t max_model_bytes = 0;           // 0: none
  int64_t max_request_memory_bytes = 0;  // 0: none
  std::string op_library;
  // --- Batches.
  bool enable_batching = false;
  std::string batching_parameters_file;
  bool enable_per_model_batching_parameters = false;
  // --- How models run.
  int32_t tensorflow_session_parallelism = 0;
  int32_t tensorflow_intra_op_parallelism = 0;
  int32_t tensorflow_inter_op_parallelism = 0;
  bool enable_serialization_as_tensor_content = false;
  // --- Operation.
  std::string monitoring_config_file;
  int32_t drain_delay_seconds = 0;
  int32_t drain_timeout_seconds = 30;
  bool version = false;
  // Accepted with their defaults alone: what the stock server has and this one
  // does not.
  bool enable_profiler = true;
  bool use_alts_credentials = false;
  std::string platform_config_file;
  std::string tensorflow_session_config_file;
  double per_process_gpu_memory_fraction = 0;
  bool remove_unused_fields_from_bundle_metagraph = true;
  std::string thread_pool_factory_config_file;
  std::string mixed_precision;
  bool skip_initialize_tpu = false;
  bool prefer_tflite_model = false;
  int32_t num_tflite_pools = 0;
  int32_t num_tflite_interpreters_per_pool = 1;
  bool xla_cpu_compilation_enabled = false;
  bool xla_gpu_compilation_enabled = false;
};

// Sets what the arguments say; *unknown are those that are no flags. The
// image's variables MODEL_NAME and MODEL_BASE_PATH (the folder above the
// model's) stand in where no flag names models. InvalidArgument for values that
// are not what the flag takes; Unimplemented for what is not there.
Status ParseFlags(absl::Span<const std::string> args, Flags* flags,
                  std::vector<std::string>* unknown);
// "usage: ..." and a line or two for each flag.
std::string FlagsUsage();
// The flags as a table in Markdown, for docs/serving.md.
std::string FlagsTable();

}  // namespace headrace::serving
