#include "serving/start/flags.h"

#include <cstdlib>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace headrace::serving {
namespace {

using Member = std::variant<bool Flags::*, int32_t Flags::*, int64_t Flags::*,
                            double Flags::*, std::string Flags::*>;

struct FlagRow {
  StringView name;
  Member member;
  StringView help;
  bool absent = false;  // accepted with its default alone
};

#define HR_FLAG(name, help) \
  { #name, &Flags::name, help }
#define HR_ABSENT(name, help) \
  { #name, &Flags::name, help, true }
const FlagRow kRows[] = {
    HR_FLAG(port, "The port of gRPC; 0: none."),
    HR_FLAG(grpc_socket_path, "A Unix socket for gRPC besides."),
    HR_FLAG(grpc_channel_arguments,
            "Arguments of gRPC's channels: key=value,key=value."),
    HR_FLAG(grpc_max_threads,
            "Threads for runs that take long; 0: four for each processor."),
    HR_FLAG(rest_api_port, "The port of REST; 0: none."),
    HR_FLAG(rest_api_num_threads,
            "Threads that read REST requests; 0: one for each processor."),
    HR_FLAG(rest_api_timeout_in_ms, "How long a REST request may take."),
    HR_FLAG(rest_api_enable_cors_support, "Answers carry CORS headers."),
    HR_FLAG(rest_api_max_body_bytes, "Longer requests are refused (413)."),
    HR_FLAG(ssl_config_file, "An SSLConfig text proto: TLS for gRPC."),
    HR_FLAG(rest_api_ssl_config_file, "The same for REST."),
    HR_FLAG(auth_token_file,
            "A token a line: requests need one of them, on both ports."),
    HR_FLAG(health_port,
            "A port for live, ready and metrics alone, open before models "
            "are loaded; 0: none."),
    HR_FLAG(enable_grpc_healthcheck_service,
            "Accepted: the health service is always there."),
    HR_FLAG(enable_grpc_reflection, "gRPC's reflection service."),
    HR_FLAG(enable_session_service,
            "SessionService: clients may feed and fetch any tensor."),
    HR_FLAG(model_name, "The name of the one model."),
    HR_FLAG(model_base_path, "The folder of the one model's versions."),
    HR_FLAG(model_config_file, "A ModelServerConfig text proto: many models."),
    HR_FLAG(model_config_file_poll_wait_seconds,
            "Reads that file again each so many seconds; 0: never."),
    HR_FLAG(file_system_poll_wait_seconds,
            "Looks for versions each so many seconds; 0: once."),
    HR_FLAG(saved_model_tags, "Tags of the graph to serve, between commas."),
    HR_FLAG(allow_version_labels_for_unavailable_models,
            "New labels may point to versions that are not loaded yet."),
    HR_FLAG(enable_signature_method_name_check,
            "Requests must fit the signature's method name."),
    HR_FLAG(max_num_load_retries, "Tries after the first that fails."),
    HR_FLAG(load_retry_interval_micros, "Between tries; negative: none."),
    HR_FLAG(num_load_threads, "Threads that load versions; 0: one."),
    HR_FLAG(num_unload_threads, "Threads that unload versions; 0: one."),
    HR_FLAG(flush_filesystem_caches,
            "Drops the files of a loaded version from the page cache."),
    HR_FLAG(enable_model_warmup,
            "Runs assets.extra/tf_serving_warmup_requests before a version "
            "is available."),
    HR_FLAG(num_request_iterations_for_warmup,
            "How often each of these is run; 0: once."),
    HR_FLAG(lazy_load_models, "A model is loaded by its first request."),
    HR_FLAG(total_model_memory_limit_bytes,
            "Versions that were used least recently make room; 0: no limit."),
    HR_FLAG(pinned_models, "Models, between commas, that are never put out."),
    HR_FLAG(start_with_failed_models,
            "A model that fails at the start does not end the server."),
    HR_FLAG(safe_mode, "Models may not touch files, network or processes."),
    HR_FLAG(safe_mode_allow_ops, "Ops, between commas, permitted besides."),
    HR_FLAG(max_model_bytes,
            "Versions whose files have more are not loaded; 0: no limit."),
    HR_FLAG(max_request_memory_bytes,
            "Of the tensors of one request, which fails beyond; 0: no limit."),
    HR_FLAG(op_library,
            "Shared libraries of ops, between commas, loaded before models; "
            "may be repeated."),
    HR_FLAG(enable_batching, "Requests run together in batches."),
    HR_FLAG(batching_parameters_file, "A BatchingParameters text proto."),
    HR_FLAG(enable_per_model_batching_parameters,
            "batching_params.pbtxt beside a model says how."),
    HR_FLAG(tensorflow_session_parallelism,
            "Threads of one run, for both of the next; 0: all processors."),
    HR_FLAG(tensorflow_intra_op_parallelism, "Threads of one op."),
    HR_FLAG(tensorflow_inter_op_parallelism, "Accepted: one pool serves both."),
    HR_FLAG(enable_serialization_as_tensor_content,
            "Predict answers with tensor_content in place of typed fields."),
    HR_FLAG(monitoring_config_file, "A MonitoringConfig text proto: metrics."),
    HR_FLAG(drain_delay_seconds,
            "Between the signal to stop and the ports' closing."),
    HR_FLAG(drain_timeout_seconds, "How long requests in flight may go on."),
    HR_FLAG(version, "Prints the version."),
    HR_ABSENT(enable_profiler, "The profiler's service."),
    HR_ABSENT(use_alts_credentials, "ALTS."),
    HR_ABSENT(platform_config_file, "Other platforms."),
    HR_ABSENT(tensorflow_session_config_file, "A ConfigProto."),
    HR_ABSENT(per_process_gpu_memory_fraction, "GPU memory."),
    HR_ABSENT(remove_unused_fields_from_bundle_metagraph,
              "Graphs are always dropped once loaded."),
    HR_ABSENT(thread_pool_factory_config_file, "Other thread pools."),
    HR_ABSENT(mixed_precision, "Rewrites to smaller numbers."),
    HR_ABSENT(skip_initialize_tpu, "TPUs."),
    HR_ABSENT(prefer_tflite_model, "TFLite models."),
    HR_ABSENT(num_tflite_pools, "TFLite models."),
    HR_ABSENT(num_tflite_interpreters_per_pool, "TFLite models."),
    HR_ABSENT(xla_cpu_compilation_enabled, "XLA."),
    HR_ABSENT(xla_gpu_compilation_enabled, "XLA."),
};
#undef HR_FLAG
#undef HR_ABSENT

bool ParseValue(StringView text, bool* value) {
  return absl::SimpleAtob(text, value);
}
bool ParseValue(StringView text, int32_t* value) {
  return absl::SimpleAtoi(text, value);
}
bool ParseValue(StringView text, int64_t* value) {
  return absl::SimpleAtoi(text, value);
}
bool ParseValue(StringView text, double* value) {
  return absl::SimpleAtod(text, value);
}
bool ParseValue(StringView text, std::string* value) {
  *value = std::string(text);
  return true;
}

std::string Written(bool v) { return v ? "true" : "false"; }
std::string Written(const std::string& v) { return "\"" + v + "\""; }
template <typename T>
std::string Written(const T& v) {
  return absl::StrCat(v);
}
std::string DefaultOf(const FlagRow& row) {
  const Flags defaults;
  return std::visit([&](auto m) { return Written(defaults.*m); }, row.member);
}

const FlagRow* FindRow(StringView name) {
  for (const FlagRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Status SetFlag(const FlagRow& row, StringView given, Flags* flags) {
  std::string text(given);
  // Repeated, it names further ones.
  if (row.name == "op_library" && !flags->op_library.empty()) {
    text = absl::StrCat(flags->op_library, ",", text);
  }
  const bool parsed = std::visit(
      [&](auto m) { return ParseValue(text, &(flags->*m)); }, row.member);
  if (!parsed) {
    return InvalidArgument("Couldn't interpret value ", text, " for flag ",
                           row.name, ".");
  }
  const Flags defaults;
  const bool as_default =
      std::visit([&](auto m) { return flags->*m == defaults.*m; }, row.member);
  if (!row.absent || as_default) return OkStatus();
  return Unimplemented("--", row.name, "=", text,
                       ": this server does not have it (", row.help, ")");
}

void UseEnvironment(Flags* flags) {
  if (!flags->model_base_path.empty() || !flags->model_config_file.empty()) {
    return;
  }
  const char* name = std::getenv("MODEL_NAME");
  const char* base = std::getenv("MODEL_BASE_PATH");
  if (name == nullptr || base == nullptr) return;
  flags->model_name = name;
  flags->model_base_path = absl::StrCat(base, "/", name);
}

}  // namespace

Status ParseFlags(absl::Span<const std::string> args, Flags* flags,
                  std::vector<std::string>* unknown) {
  for (const std::string& arg : args) {
    StringView rest = arg;
    if (!absl::ConsumePrefix(&rest, "--")) absl::ConsumePrefix(&rest, "-");
    const size_t equals = rest.find('=');
    const FlagRow* row = FindRow(rest.substr(0, equals));
    if (row == nullptr || rest.size() == arg.size()) {
      unknown->push_back(arg);
      continue;
    }
    const bool bare = equals == StringView::npos;
    if (bare && !std::holds_alternative<bool Flags::*>(row->member)) {
      return InvalidArgument("--", row->name, " wants a value: --", row->name,
                             "=...");
    }
    HR_RETURN_IF_ERROR(
        SetFlag(*row, bare ? "true" : rest.substr(equals + 1), flags));
  }
  UseEnvironment(flags);
  return OkStatus();
}

std::string FlagsUsage() {
  std::string text = "usage: headrace serve\nFlags:\n";
  for (const FlagRow& row : kRows) {
    absl::StrAppend(&text, "\t--", row.name, "=", DefaultOf(row), "\t",
                    row.absent ? "Not there, but for its default: " : "",
                    row.help, "\n");
  }
  return text;
}

std::string FlagsTable() {
  std::string text = "| flag | default | |\n|---|---|---|\n";
  for (const FlagRow& row : kRows) {
    absl::StrAppend(&text, "| `", row.name, "` | ", DefaultOf(row), " | ",
                    row.absent ? "refused but for its default: " : "", row.help,
                    " |\n");
  }
  return text;
}

}  // namespace headrace::serving
