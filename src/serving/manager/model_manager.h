// The models of a server: loaded, served and replaced as the config and the
// folders of their versions change.
//
// Requests read a table of what is loaded (serving_table.h), which is replaced
// as a whole. All else is on one Board under one lock, which no request that
// finds its version takes, and no load holds. Threads of the manager: one that
// takes steps when the board changed, load threads and unload threads of the
// lowest priority, one that looks at base paths, and one for the config file.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "serving/manager/board.h"
#include "serving/manager/manager_options.h"
#include "serving/manager/unloader.h"
#include "serving/manager/work_threads.h"
#include "serving/models.h"

namespace headrace::serving {

// Thread-safe.
class ModelManager : public Models {
 public:
  explicit ModelManager(ManagerOptions options);
  ~ModelManager() override;

  // Serves the models of a config: once, before all else but Ready, StatusOf
  // and Stop, which may be called meanwhile. Returns when each model has a
  // version or failed. Errors: those of CheckConfig and CheckLabels; Unknown "N
  // model(s) did not become available: ..."; ResourceExhausted where there are
  // no threads; Unavailable where Stop is called. Stopped after an error.
  Status Start(const ModelServerConfig& config);
  // Unloads all models: ends what waits, lets a load under way end, and frees
  // what requests do not hold; what they hold is freed by them.
  void Stop();

  // Where a version has to be loaded first, that is waited for, as far as what
  // the calling thread listens to (base/cancellation.h) lets it.
  StatusOr<ServablePtr> Find(const ModelSpec& spec) override;
  bool FindWaits(const ModelSpec& spec) override;
  Status StatusOf(const ModelSpec& spec,
                  GetModelStatusResponse* response) override;
  // Waits for models that were not there before. Besides the errors of Start:
  // those of what the calling thread listens to.
  Status Reload(const ModelServerConfig& config) override;
  ModelServerConfig Config() override;
  bool Ready() override;
  // Besides, Unknown with the error of the version that does not load, and the
  // errors of what the calling thread listens to.
  Status LoadModel(const std::string& name) override;
  Status UnloadModel(const std::string& name) override;

  // Looks at the base paths now.
  void Poll();
  // What is loaded or being loaded, with estimates of its memory; and the sum.
  std::vector<std::pair<ServableId, uint64_t>> Loaded();
  uint64_t MemoryInUse();

 private:
  // What is let go of when a lock was.
  struct Leavings {
    std::vector<ServablePtr> versions;
    std::shared_ptr<const ServingTable> table;
  };

  Status StartThreads(size_t models);
  Status AddThread(void (ModelManager::*body)())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(stop_mutex_);
  Status StartModels(const ModelServerConfig& config);
  // Checks a config and puts it in force; the names of new models.
  StatusOr<std::set<std::string>> Apply(const ModelServerConfig& config);
  // `in_haste`: further looks at base paths, and further tries to load, are not
  // waited for.
  Status WaitFor(const std::set<std::string>& names, bool in_haste);
  // An error when all have settled and some failed; none yet: nullopt.
  std::optional<Status> SettledStatus(const std::set<std::string>& names,
                                      bool in_haste)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndStartThreads();

  // Takes the steps that are due and shows requests the outcome. Throws where
  // there is no memory; then they stay due.
  void Round(Leavings* leavings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLoad(const LoadJob& job, Clock::time_point due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until the manager stops or the time is over; whether it stops.
  bool Sleep(int64_t seconds);
  void Conduct();
  bool TakeTurn();  // false when the manager stops
  void LetAllGo();
  void PollFiles();
  void PollConfig();

  // manager_loads.cc
  void RunLoad(const LoadJob& job);
  StatusOr<ServablePtr> Load(const LoadJob& job);
  Status TakeMemory(const LoadJob& job, uint64_t bytes);
  // Has versions put out so that `bytes` will fit; false where they never will.
  bool MakeRoom(uint64_t bytes, bool in_haste)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t MemoryCounted() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NoteFailure(const LoadJob& job, VersionRecord& v, const Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndLoad(const LoadJob& job, StatusOr<ServablePtr> loaded,
               double seconds);
  void Freed(const ServableId& id);
  StatusOr<ServablePtr> FindOnDemand(const ServableId& id);

  // The text is absl::StrCat of the arguments; lost where there is no memory.
  template <typename... Args>
  void Log(Severity severity, const Args&... args) {
    (void)Guarded("a message", [&] {
      Write(severity, absl::StrCat(internal::Printable(args)...));
      return OkStatus();
    });
  }
  void Write(Severity severity, const std::string& text);

  const ManagerOptions options_;
  TableSlot table_;
  CancellationToken stop_;  // of loads

  Mutex poll_mutex_;  // one look at the files at a time; before mutex_
  Mutex mutex_;
  CondVar changed_;  // the board, or stopping_
  Board board_ ABSL_GUARDED_BY(mutex_);
  ModelServerConfig config_ ABSL_GUARDED_BY(mutex_);
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;  // of configs
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;      // steps may be due
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<LoadJob> due_loads_ ABSL_GUARDED_BY(mutex_);  // not asked for yet
  // Those of Start end with it; then they are null.
  std::unique_ptr<WorkThreads> start_loads_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WorkThreads> loads_;
  std::unique_ptr<Unloader> unloader_;

  Mutex stop_mutex_;  // held by Stop, and while threads are started
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace headrace::serving
