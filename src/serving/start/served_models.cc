#include "serving/start/served_models.h"

#include "absl/strings/str_split.h"
#include "base/cpu_count.h"
#include "op/reach.h"
#include "serving/metrics/metrics.h"
#include "serving/model/dispatch.h"
#include "serving/warmup/warmup.h"

namespace headrace::serving {
namespace {

// Counts and times the runs of a version.
class MeteredRunner : public Runner {
 public:
  MeteredRunner(RunnerPtr inner, StringView model)
      : inner_(std::move(inner)),
        runs_(metrics::GraphRuns()),
        latency_(metrics::RuntimeLatency(model, "Predict")) {}

  void Run(CallPtr call, Tensors inputs, RunDone done) override {
    inner_->Run(std::move(call), std::move(inputs),
                [runs = runs_, latency = latency_, start = Call::Clock::now(),
                 done = std::move(done)](StatusOr<Tensors> outputs) {
                  runs->Increment();
                  latency->Record(std::chrono::duration<double, std::micro>(
                                      Call::Clock::now() - start)
                                      .count());
                  done(std::move(outputs));
                });
  }

 private:
  const RunnerPtr inner_;
  const metrics::CounterPtr runs_;
  const metrics::HistogramPtr latency_;
};

void TellLoad(const LoadEvent& event) {
  const std::string version = absl::StrCat(event.id.version);
  const StringView code = metrics::CodeName(event.status);
  metrics::LoadAttemptCount(event.id.name, code)->Increment();
  if (!event.status.ok()) return;
  metrics::LoadLatency(event.id.name)
      ->Increment(static_cast<int64_t>(event.seconds * 1e6));
  metrics::ModelLoadSeconds(event.id.name, event.id.version)
      ->Set(event.seconds);
  metrics::ModelMemoryBytes(event.id.name, event.id.version)
      ->Set(static_cast<double>(event.bytes));
}

StatusOr<SandboxPtr> SandboxOf(const Flags& flags, const ServableId& id) {
  SandboxPtr none;
  if (!flags.safe_mode) return none;
  SafetyPolicy policy;
  for (std::string& op : CommaSeparated(flags.safe_mode_allow_ops)) {
    policy.allowed_ops.insert(std::move(op));
  }
  return MakeSandbox(std::move(policy), absl::StrCat("the model ", id.name));
}

}  // namespace

std::vector<std::string> CommaSeparated(const std::string& joined) {
  return absl::StrSplit(joined, ',', absl::SkipEmpty());
}

AnswerOptions AnswerOptionsOf(const Flags& flags) {
  AnswerOptions answers;
  answers.check_method_names = flags.enable_signature_method_name_check;
  answers.max_request_memory_bytes = flags.max_request_memory_bytes;
  answers.tensor_content = flags.enable_serialization_as_tensor_content;
  return answers;
}

RunThreads::RunThreads(const Flags& flags)
    : per_model_batching_(flags.enable_per_model_batching_parameters),
      workers_(flags.grpc_max_threads > 0 ? flags.grpc_max_threads
                                          : 4 * AvailableCpus()) {}

StatusOr<std::unique_ptr<RunThreads>> RunThreads::Make(const Flags& flags) {
  std::unique_ptr<RunThreads> made(new RunThreads(flags));
  if (!flags.enable_batching) {
    if (!flags.batching_parameters_file.empty()) {
      return InvalidArgument(
          "server_options.batching_parameters_file is set without setting "
          "server_options.enable_batching to true.");
    }
    return made;
  }
  BatchingParameters parameters;
  // The stock server's name, where no file gives another.
  parameters.mutable_thread_pool_name()->set_value(
      "model_server_batch_threads");
  if (!flags.batching_parameters_file.empty()) {
    HR_ASSIGN_OR_RETURN(parameters,
                        ReadBatchingParameters(flags.batching_parameters_file));
  }
  HR_ASSIGN_OR_RETURN(made->batching_, CheckBatchingParameters(parameters));
  HR_ASSIGN_OR_RETURN(made->scheduler_, BatchScheduler::Start(made->batching_));
  return made;
}

StatusOr<decltype(ServableOptions::wrap)> RunThreads::WrapOf(
    const ServableId& id, const std::string& folder) {
  const auto metered = [name = id.name](RunnerPtr runner) -> RunnerPtr {
    return std::make_shared<MeteredRunner>(std::move(runner), name);
  };
  std::optional<BatchingOptions> batching;
  if (scheduler_ && per_model_batching_) {
    HR_ASSIGN_OR_RETURN(batching, ReadModelBatching(folder));
  } else if (scheduler_) {
    batching = batching_;
  }
  if (!batching) {
    return [this, metered](RunnerPtr runner, const Signature&,
                           absl::Span<const int>) {
      return Dispatched(metered(std::move(runner)), &workers_);
    };
  }
  return [metered, wrap = WrapInBatches(scheduler_, *batching, id)](
             RunnerPtr runner, const Signature& signature,
             absl::Span<const int> outputs) {
    return wrap(metered(std::move(runner)), signature, outputs);
  };
}

ManagerOptions ManagerOptionsOf(const Flags& flags, RunThreads& threads,
                                RequestLogs& logs,
                                std::function<void(const std::string&)> log) {
  ManagerOptions o;
  o.file_system_poll_wait_seconds = flags.file_system_poll_wait_seconds;
  o.max_num_load_retries = flags.max_num_load_retries;
  o.load_retry_interval_micros = flags.load_retry_interval_micros;
  o.num_load_threads = flags.num_load_threads;
  o.num_unload_threads = flags.num_unload_threads;
  o.allow_version_labels_for_unavailable_models =
      flags.allow_version_labels_for_unavailable_models;
  o.flush_filesystem_caches = flags.flush_filesystem_caches;
  o.saved_model_tags = CommaSeparated(flags.saved_model_tags);
  o.model_config_file = flags.model_config_file;
  o.model_config_file_poll_wait_seconds =
      flags.model_config_file_poll_wait_seconds;
  o.lazy_load_models = flags.lazy_load_models;
  o.total_model_memory_limit_bytes = flags.total_model_memory_limit_bytes;
  for (std::string& name : CommaSeparated(flags.pinned_models)) {
    o.pinned_models.insert(std::move(name));
  }
  o.max_model_bytes = std::max<int64_t>(0, flags.max_model_bytes);
  o.start_with_failed_models = flags.start_with_failed_models;
  o.servable_options =
      [flags, &threads](
          const ServableId& id,
          const std::string& folder) -> StatusOr<ServableOptions> {
    ServableOptions options;
    options.max_request_memory_bytes = flags.max_request_memory_bytes;
    options.session = flags.enable_session_service;
    HR_ASSIGN_OR_RETURN(options.sandbox, SandboxOf(flags, id));
    HR_ASSIGN_OR_RETURN(options.wrap, threads.WrapOf(id, folder));
    return options;
  };
  if (flags.enable_model_warmup) {
    WarmupOptions warm_up;
    warm_up.request_iterations =
        std::max(1, flags.num_request_iterations_for_warmup);
    warm_up.answer_options = AnswerOptionsOf(flags);
    o.warm_up = [warm_up](const ServablePtr& version) {
      return WarmUp(version, warm_up);
    };
  }
  o.prepare =
      [&logs](
          const ModelServerConfig& config) -> StatusOr<std::function<void()>> {
    HR_ASSIGN_OR_RETURN(auto opened, logs.Open(config));
    return std::function<void()>([&logs, opened] { logs.Put(opened); });
  };
  o.on_load = &TellLoad;
  o.on_unload = [](const ServableId& id) {
    metrics::ForgetVersion(id.name, id.version);
  };
  o.log = [log](Severity, const std::string& text) { log(text); };
  return o;
}

}  // namespace headrace::serving
