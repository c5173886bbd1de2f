// What load threads do.
#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "serving/manager/memory_budget.h"
#include "serving/manager/model_manager.h"
#include "serving/manager/version_files.h"

namespace headrace::serving {
namespace {

// How long a load waits for versions that no request holds. Then such that some
// hold are put out, too: under steady requests none might ever be idle.
constexpr std::chrono::milliseconds kWaitForIdle{1000};
constexpr std::chrono::milliseconds kLookForRoom{10};

// Copies of a version that the board and requests' table have.
constexpr long kIdleCopies = 2;

Clock::time_point TimeOfRetry(int64_t interval_micros) {
  // Ten years, so that a time cannot overflow.
  constexpr int64_t kLongest = int64_t{3660} * 24 * 3600 * 1'000'000;
  return Clock::now() + std::chrono::microseconds(
                            std::clamp<int64_t>(interval_micros, 0, kLongest));
}

Status NoRoom(const ServableId& id, uint64_t bytes, uint64_t limit) {
  return ResourceExhausted("Insufficient resources to load servable ",
                           TextOf(id), ": it takes about ", bytes,
                           " bytes, of ", limit, " that all models may have");
}

// Sums might pass what a number can hold.
bool FitsIn(uint64_t limit, uint64_t used, uint64_t bytes) {
  return used <= limit && bytes <= limit - used;
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void ModelManager::RunLoad(const LoadJob& job) {
  {
    MutexLock lock(mutex_);
    VersionRecord* v = board_.Loading(job);
    if (v == nullptr || stopping_) return;
    board_.Begin(*v);
    changed_.NotifyAll();
  }
  const auto start = Clock::now();
  StatusOr<ServablePtr> loaded = nullptr;
  const Status s = Guarded("loading a model", [&] {
    loaded = Load(job);
    return loaded.status();
  });
  if (!s.ok()) loaded = s;
  (void)Guarded("dropping file caches", [&] {
    if (options_.flush_filesystem_caches) DropFileCache(job.folder);
    return OkStatus();
  });
  const double seconds = SecondsSince(start);
  (void)Guarded("ending a load", [&] {
    EndLoad(job, std::move(loaded), seconds);
    return OkStatus();
  });
}

StatusOr<ServablePtr> ModelManager::Load(const LoadJob& job) {
  const StopScope scope(&stop_);
  Log(Severity::kInfo, "Loading servable version ", TextOf(job.id));
  HR_ASSIGN_OR_RETURN(const uint64_t bytes, BytesBelow(job.folder));
  const uint64_t most = options_.max_model_bytes;
  if (most != 0 && bytes > most) {
    return ResourceExhausted("Insufficient resources to load servable ",
                             TextOf(job.id), ": its files have ", bytes,
                             " bytes, and may have ", most,
                             " (--max_model_bytes)");
  }
  HR_RETURN_IF_ERROR(TakeMemory(job, EstimateOfMemory(bytes)));
  ServableOptions options;
  if (options_.servable_options) {
    HR_ASSIGN_OR_RETURN(options, options_.servable_options(job.id, job.folder));
  }
  options.tags = options_.saved_model_tags;
  const auto& load = options_.load;
  HR_ASSIGN_OR_RETURN(ServablePtr servable,
                      load ? load(job.id, job.folder, options)
                           : Servable::Load(job.id, job.folder, options));
  if (servable == nullptr) return Internal("a load gave no model");
  if (options_.warm_up) HR_RETURN_IF_ERROR(options_.warm_up(servable));
  return unloader_->Wrap(std::move(servable),
                         [this, id = job.id] { Freed(id); });
}

uint64_t ModelManager::MemoryCounted() {
  uint64_t sum = 0;
  for (const auto& [name, model] : board_.models()) {
    for (const auto& [number, v] : model.versions) sum += v.bytes;
  }
  return sum;
}

uint64_t ModelManager::MemoryInUse() {
  MutexLock lock(mutex_);
  return MemoryCounted();
}

std::vector<std::pair<ServableId, uint64_t>> ModelManager::Loaded() {
  std::vector<std::pair<ServableId, uint64_t>> loaded;
  MutexLock lock(mutex_);
  for (const auto& [name, model] : board_.models()) {
    for (const auto& [number, v] : model.versions) {
      if (v.bytes != 0) loaded.push_back({{name, number}, v.bytes});
    }
  }
  return loaded;
}

Status ModelManager::TakeMemory(const LoadJob& job, uint64_t bytes) {
  const uint64_t limit = options_.total_model_memory_limit_bytes;
  const auto hurry = Clock::now() + kWaitForIdle;
  MutexLock lock(mutex_);
  while (true) {
    VersionRecord* v = board_.Loading(job);
    if (v == nullptr || stopping_) return Cancelled("not wanted any more");
    if (limit == 0 || FitsIn(limit, MemoryCounted(), bytes)) {
      v->bytes = bytes;
      v->used = std::make_shared<LastUse>(
          std::chrono::duration_cast<std::chrono::milliseconds>(
              Clock::now().time_since_epoch())
              .count());
      return OkStatus();
    }
    v->never_fits = bytes > limit;
    if (v->never_fits || !MakeRoom(bytes, Clock::now() >= hurry)) {
      return NoRoom(job.id, bytes, limit);
    }
    changed_.WaitFor(mutex_, kLookForRoom);
  }
}

bool ModelManager::MakeRoom(uint64_t bytes, bool in_haste) {
  uint64_t stays = 0;  // what is not on its way out
  std::vector<LoadedVersion> idle, available,
      loading;  // each with those before
  for (const auto& [name, model] : board_.models()) {
    const bool pinned = options_.pinned_models.contains(name);
    for (const auto& [number, v] : model.versions) {
      if (v.to_put_out || v.state == ModelVersionStatus::UNLOADING) continue;
      stays += v.bytes;
      // One that is not wanted would not come back.
      LoadedVersion loaded{{name, number}, v.bytes, 0, v.wanted && !pinned};
      if (v.used != nullptr) loaded.used = v.used->load();
      loading.push_back(loaded);
      loaded.may_go &= v.state == ModelVersionStatus::AVAILABLE;
      available.push_back(loaded);
      loaded.may_go &= v.servable.use_count() <= kIdleCopies;
      idle.push_back(loaded);
    }
  }
  const uint64_t limit = options_.total_model_memory_limit_bytes;
  if (FitsIn(limit, stays, bytes)) return true;
  const uint64_t wanting = bytes - (limit - std::min(limit, stays));
  if (!VersionsToPutOut(std::move(loading), wanting)) return false;
  auto go = VersionsToPutOut(std::move(idle), wanting);
  if (!go && in_haste) go = VersionsToPutOut(std::move(available), wanting);
  if (!go) return true;
  for (const ServableId& id : *go) board_.Find(id)->to_put_out = true;
  Changed();
  return true;
}

// Whether it is tried again.
bool ModelManager::NoteFailure(const LoadJob& job, VersionRecord& v,
                               const Status& status) {
  v.bytes = 0;
  if (absl::IsResourceExhausted(status) && v.asked) {
    board_.Refuse(v, status);
    return false;
  }
  const int retries = v.never_fits ? 0 : options_.max_num_load_retries;
  if (!board_.Fail(v, status, retries)) return false;
  try {
    AddLoad(job, TimeOfRetry(options_.load_retry_interval_micros));
    return true;
  } catch (...) {
    return board_.Fail(v, CaughtStatus("asking for a load"), 0);
  }
}

void ModelManager::EndLoad(const LoadJob& job, StatusOr<ServablePtr> loaded,
                           double seconds) {
  LoadEvent event{job.id, loaded.status(), 0, seconds, 0};
  bool again = false;
  {
    MutexLock lock(mutex_);
    VersionRecord* v = board_.Loading(job);
    if (v != nullptr) {
      event.tries = v->tries;
      event.bytes = v->bytes;
      if (loaded.ok()) {
        board_.Succeed(*v, *std::move(loaded));
      } else {
        again = NoteFailure(job, *v, event.status);
      }
      Changed();
    }
  }
  if (event.status.ok()) {
    Log(Severity::kInfo, "Successfully loaded servable version ",
        TextOf(job.id));
  } else {
    Log(Severity::kError, "Loading servable: ", TextOf(job.id),
        " failed: ", event.status, again ? "; it is tried again" : "");
  }
  if (options_.on_load) options_.on_load(event);
}

void ModelManager::Freed(const ServableId& id) {
  {
    MutexLock lock(mutex_);
    board_.Unloaded(id);
    Changed();
  }
  Log(Severity::kInfo, "Successfully unloaded servable version ", TextOf(id));
  if (!options_.on_unload) return;
  (void)Guarded("telling of an unload", [&] {
    options_.on_unload(id);
    return OkStatus();
  });
}

StatusOr<ServablePtr> ModelManager::FindOnDemand(const ServableId& id) {
  constexpr std::chrono::milliseconds kLookAtStop{20};
  MutexLock lock(mutex_);
  VersionRecord* v = board_.Find(id);
  const int refusals = v == nullptr ? 0 : v->refusals;
  // The record of one that is over may be forgotten in between.
  for (; v != nullptr; v = board_.Find(id)) {
    if (v->state == ModelVersionStatus::AVAILABLE) return v->servable;
    if (v->waits || v->refusals != refusals) return v->status;
    if (stopping_) return Unavailable("server is shutting down");
    HR_RETURN_IF_ERROR(CheckTokens());
    if (!v->asked) {
      if (!board_.Ask(id)) break;
      Changed();
    }
    changed_.WaitFor(mutex_, kLookAtStop);
  }
  if (v != nullptr && v->wanted && !v->status.ok()) return v->status;
  return NotFound("Servable not found for request: Specific(", id.name, ", ",
                  id.version, ")");
}

}  // namespace headrace::serving
