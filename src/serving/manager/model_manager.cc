#include "serving/manager/model_manager.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/cpu_count.h"
#include "base/threads.h"
#include "serving/manager/config.h"

namespace headrace::serving {
namespace {

// While they start, the models may have more threads than processors: part of a
// load is waiting for files.
constexpr int kStartThreadsPerCpu = 4;
// Before steps are tried again that found no memory.
constexpr std::chrono::milliseconds kWaitForMemory{100};
// How soon a wait sees that what its thread listens to says stop.
constexpr std::chrono::milliseconds kLook{20};

// What was found below a base path.
struct Look {
  StatusOr<std::map<int64_t, std::string>> there;
  std::vector<std::string> warnings;
};

Status ShuttingDown() { return Unavailable("server is shutting down"); }
Status NoSuchModel(StringView what, const std::string& name) {
  return NotFound("failed to ", what, " '", name,
                  "', the config has no such model");
}

}  // namespace

ModelManager::ModelManager(ManagerOptions options)
    : options_(std::move(options)), board_(options_.lazy_load_models) {}

ModelManager::~ModelManager() { Stop(); }

Status ModelManager::Start(const ModelServerConfig& config) {
  Status s = Guarded("starting the models", [&] {
    HR_RETURN_IF_ERROR(CheckConfig(config, {}));
    HR_RETURN_IF_ERROR(StartThreads(config.model_config_list().config_size()));
    return StartModels(config);
  });
  const Status ended = Guarded("starting the models", [&] {
    EndStartThreads();
    return OkStatus();
  });
  if (s.ok()) s = ended;
  if (!s.ok()) Stop();
  return s;
}

Status ModelManager::StartThreads(size_t models) {
  const size_t most = std::max(1, AvailableCpus()) * kStartThreadsPerCpu;
  const int at_start = std::max(options_.num_load_threads,
                                static_cast<int>(std::min(models, most)));
  MutexLock stop_lock(stop_mutex_);
  MutexLock lock(mutex_);
  if (stopping_) return ShuttingDown();
  if (started_) return FailedPrecondition("the models were started before");
  HR_ASSIGN_OR_RETURN(unloader_, Unloader::Start(options_.num_unload_threads));
  HR_ASSIGN_OR_RETURN(
      loads_, WorkThreads::Start(options_.num_load_threads, Priority::kLowest));
  HR_ASSIGN_OR_RETURN(start_loads_,
                      WorkThreads::Start(at_start, Priority::kNormal));
  started_ = true;
  HR_RETURN_IF_ERROR(AddThread(&ModelManager::Conduct));
  if (options_.file_system_poll_wait_seconds > 0) {
    HR_RETURN_IF_ERROR(AddThread(&ModelManager::PollFiles));
  }
  if (!options_.model_config_file.empty() &&
      options_.model_config_file_poll_wait_seconds > 0) {
    HR_RETURN_IF_ERROR(AddThread(&ModelManager::PollConfig));
  }
  return OkStatus();
}

Status ModelManager::AddThread(void (ModelManager::*body)()) {
  HR_ASSIGN_OR_RETURN(auto thread,
                      StartThread([this, body] { (this->*body)(); }));
  threads_.push_back(std::move(thread));
  return OkStatus();
}

Status ModelManager::StartModels(const ModelServerConfig& config) {
  if (config.config_case() == ModelServerConfig::CONFIG_NOT_SET) {
    Log(Severity::kInfo, "Taking no action for empty config.");
    return OkStatus();
  }
  HR_ASSIGN_OR_RETURN(const auto names, Apply(config));
  Poll();
  const Status s = WaitFor(names, options_.start_with_failed_models);
  if (s.code() != absl::StatusCode::kUnknown ||
      !options_.start_with_failed_models) {
    return s;
  }
  Log(Severity::kError, s.message());
  return OkStatus();
}

void ModelManager::EndStartThreads() {
  std::unique_ptr<WorkThreads> ending;
  {
    MutexLock lock(mutex_);
    ending = std::move(start_loads_);
  }
  if (ending == nullptr) return;
  for (const WorkThreads::Job& job : ending->Stop()) {
    loads_->Add(job.run, job.due);
  }
}

StatusOr<std::set<std::string>> ModelManager::Apply(
    const ModelServerConfig& config) {
  std::function<void()> prepared;
  if (options_.prepare) {
    {  // So that nothing is made ready for a config that is refused.
      MutexLock lock(mutex_);
      HR_RETURN_IF_ERROR(CheckConfig(config, config_));
    }
    HR_ASSIGN_OR_RETURN(prepared, options_.prepare(config));
  }
  Leavings leavings;
  MutexLock lock(mutex_);
  if (stopping_ || !started_) return ShuttingDown();
  HR_RETURN_IF_ERROR(CheckConfig(config, config_));
  // Nothing below fails: a config that is refused has changed nothing.
  HR_RETURN_IF_ERROR(
      CheckLabels(LabelsOf(config), LabelsOf(config_),
                  options_.allow_version_labels_for_unavailable_models,
                  [board = &board_](const std::string& model, int64_t version) {
                    return board->Available(model, version);
                  }));
  std::set<std::string> names = board_.SetModels(config);
  config_ = config;
  ++generation_;
  if (prepared) prepared();
  Round(&leavings);
  return names;
}

Status ModelManager::Reload(const ModelServerConfig& config) {
  return Guarded("a new config", [&]() -> Status {
    if (config.config_case() != ModelServerConfig::kModelConfigList) {
      return InvalidArgument(
          "ServerModelConfig type not supported by HandleReloadConfigRequest. "
          "Only ModelConfigList is currently supported");
    }
    HR_ASSIGN_OR_RETURN(const auto names, Apply(config));
    Poll();
    return WaitFor(names, /*in_haste=*/false);
  });
}

std::optional<Status> ModelManager::SettledStatus(
    const std::set<std::string>& names, bool in_haste) {
  const bool looks_again =
      options_.file_system_poll_wait_seconds > 0 && !in_haste;
  std::vector<std::string> errors;
  for (const std::string& name : names) {
    Settled settled = board_.SettledOf(name, looks_again, !in_haste);
    if (settled.kind == Settled::kNotYet) return std::nullopt;
    if (settled.kind == Settled::kFailed) {
      errors.push_back(absl::StrCat("{", settled.error, "}"));
    }
  }
  if (errors.empty()) return OkStatus();
  return Unknown(errors.size(), " model(s) did not become available: ",
                 absl::StrJoin(errors, ", "));
}

Status ModelManager::WaitFor(const std::set<std::string>& names,
                             bool in_haste) {
  MutexLock lock(mutex_);
  while (true) {
    if (stopping_) return ShuttingDown();
    if (auto s = SettledStatus(names, in_haste)) return *std::move(s);
    HR_RETURN_IF_ERROR(CheckTokens());
    changed_.WaitFor(mutex_, kLook);
  }
}

void ModelManager::Poll() {
  MutexLock poll_lock(poll_mutex_);
  std::vector<std::pair<std::string, std::string>> models;
  int64_t generation = 0;
  {
    MutexLock lock(mutex_);
    generation = generation_;
    for (const auto& [name, model] : board_.models()) {
      if (model.configured) models.emplace_back(name, model.base_path);
    }
  }
  std::vector<Look> looks;
  for (const auto& [name, base_path] : models) {
    Look& look = looks.emplace_back();
    look.there = ListVersions(base_path, &look.warnings);
  }
  Leavings leavings;
  {
    MutexLock lock(mutex_);
    // A config came meanwhile, and who brought it waits to look.
    if (generation_ != generation || stopping_) return;
    bool changed = false;
    for (size_t i = 0; i < looks.size(); ++i) {
      Board::Looked looked = board_.SetListing(models[i].first, looks[i].there,
                                               std::move(looks[i].warnings));
      changed |= looked.changed;
      looks[i].warnings = std::move(looked.warnings);
    }
    if (changed) Round(&leavings);
  }
  for (const Look& look : looks) {
    for (const std::string& text : look.warnings) {
      Log(look.there.ok() ? Severity::kWarning : Severity::kError, text);
    }
  }
}

void ModelManager::Round(Leavings* leavings) {
  Changed();  // until all is done
  board_.Advance(&due_loads_, &leavings->versions);
  while (!due_loads_.empty()) {
    AddLoad(due_loads_.front(), {});
    due_loads_.pop_front();
  }
  leavings->table =
      table_.Put(board_.Table(options_.total_model_memory_limit_bytes != 0));
  dirty_ = false;
}

void ModelManager::AddLoad(const LoadJob& job, Clock::time_point due) {
  WorkThreads& threads = start_loads_ != nullptr ? *start_loads_ : *loads_;
  threads.Add([this, job] { RunLoad(job); }, due);
}

void ModelManager::Changed() {
  dirty_ = true;
  changed_.NotifyAll();
}

bool ModelManager::Sleep(int64_t seconds) {
  // Of a year: the clock's last moment is not to be passed.
  constexpr int64_t kLongest = 366 * 24 * 3600;
  const auto end =
      Clock::now() + std::chrono::seconds(std::min(seconds, kLongest));
  MutexLock lock(mutex_);
  while (!stopping_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    changed_.WaitFor(mutex_, std::min(left, std::chrono::milliseconds(1000)));
  }
  return true;
}

void ModelManager::Conduct() {
  while (TakeTurn()) {
  }
}

bool ModelManager::TakeTurn() {
  Leavings leavings;
  MutexLock lock(mutex_);
  while (!dirty_ && !stopping_) changed_.Wait(mutex_);
  if (stopping_) return false;
  try {
    Round(&leavings);
  } catch (const std::bad_alloc&) {
    changed_.WaitFor(mutex_, kWaitForMemory);
  }
  return true;
}

void ModelManager::PollFiles() {
  while (!Sleep(options_.file_system_poll_wait_seconds)) {
    const Status s = Guarded("looking for versions", [&] {
      Poll();
      return OkStatus();
    });
    if (!s.ok()) Log(Severity::kError, s.message());
  }
}

void ModelManager::PollConfig() {
  while (!Sleep(options_.model_config_file_poll_wait_seconds)) {
    const Status s = Guarded("reading the config file", [&]() -> Status {
      HR_ASSIGN_OR_RETURN(const auto config,
                          ReadModelServerConfig(options_.model_config_file));
      // As at the start.
      if (config.config_case() == ModelServerConfig::CONFIG_NOT_SET) {
        return OkStatus();
      }
      return Reload(config);
    });
    if (s.ok()) continue;
    Log(Severity::kError, absl::StrCat("Reloading ", options_.model_config_file,
                                       ": ", internal::Printable(s)));
  }
}

StatusOr<ServablePtr> ModelManager::Find(const ModelSpec& spec) {
  HR_ASSIGN_OR_RETURN(Found found, FindIn(*table_.Get(), spec));
  if (found.servable != nullptr) [[likely]] {
    return std::move(found.servable);
  }
  return FindOnDemand({spec.name(), found.on_demand});
}

bool ModelManager::FindWaits(const ModelSpec& spec) {
  const auto found = FindIn(*table_.Get(), spec);
  return found.ok() && found->servable == nullptr;
}

Status ModelManager::StatusOf(const ModelSpec& spec,
                              GetModelStatusResponse* response) {
  MutexLock lock(mutex_);
  return board_.StatusOf(spec, response);
}

ModelServerConfig ModelManager::Config() {
  MutexLock lock(mutex_);
  return config_;
}

bool ModelManager::Ready() {
  MutexLock lock(mutex_);
  return started_ && !stopping_ && board_.Ready();
}

Status ModelManager::LoadModel(const std::string& name) {
  return Guarded("loading a model", [&]() -> Status {
    {
      MutexLock lock(mutex_);
      if (stopping_) return ShuttingDown();
      if (!board_.BringBack(name)) return NoSuchModel("load", name);
      Changed();
    }
    Poll();
    HR_RETURN_IF_ERROR(WaitFor({name}, /*in_haste=*/true));
    ModelSpec latest;
    latest.set_name(name);
    // One that is loaded on demand is demanded.
    return FindWaits(latest) ? Find(latest).status() : OkStatus();
  });
}

Status ModelManager::UnloadModel(const std::string& name) {
  return Guarded("unloading a model", [&] {
    Leavings leavings;
    MutexLock lock(mutex_);
    if (stopping_) return ShuttingDown();
    if (!board_.Unload(name)) return NoSuchModel("unload", name);
    Round(&leavings);
    return OkStatus();
  });
}

void ModelManager::Stop() {
  MutexLock stop_lock(stop_mutex_);
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  stop_.Cancel();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  std::unique_ptr<WorkThreads> start_loads;
  {
    MutexLock lock(mutex_);
    start_loads = std::move(start_loads_);
  }
  start_loads = nullptr;
  if (loads_ != nullptr) (void)loads_->Stop();
  // Without memory for that, all goes with the manager.
  (void)Guarded("unloading the models", [this] {
    LetAllGo();
    return OkStatus();
  });
  if (unloader_ != nullptr) unloader_->Stop();
}

void ModelManager::LetAllGo() {
  Leavings leavings;
  MutexLock lock(mutex_);
  board_.End(&leavings.versions);
  leavings.table = table_.Put(std::make_shared<const ServingTable>());
}

void ModelManager::Write(Severity severity, const std::string& text) {
  if (options_.log) return options_.log(severity, text);
  constexpr char kLetters[] = "IWE";
  std::fprintf(stderr, "%c %s\n", kLetters[static_cast<int>(severity)],
               text.c_str());
}

}  // namespace headrace::serving
