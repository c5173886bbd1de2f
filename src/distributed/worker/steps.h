// The rendezvous of a worker's steps.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "runtime/rendezvous.h"

namespace headrace::distributed {

// That of one step: what other tasks send is fetched from there when somebody
// here first asks for it.
class StepRendezvous : public LocalRendezvous,
                       public std::enable_shared_from_this<StepRendezvous> {
 public:
  // Begins to fetch the key's value; `done` is called once. What ends it.
  using Fetch =
      std::function<std::function<void()>(const RendezvousKey& key, Done done)>;

  explicit StepRendezvous(DeviceName task) : task_(std::move(task)) {}

  // How values of other tasks come; the first one counts.
  void SetFetch(Fetch fetch);
  StatusOr<bool> TryReceive(const RendezvousKey& key,
                            SentValue* value) override;
  void Await(const RendezvousKey& key, std::function<void()> ready) override;
  void Abort(Status why) override;

 private:
  // Unless the value is of this task, or on its way.
  void Begin(const RendezvousKey& key);

  const DeviceName task_;
  Mutex fetch_mutex_;
  Fetch fetch_ ABSL_GUARDED_BY(fetch_mutex_);
  bool over_ ABSL_GUARDED_BY(fetch_mutex_) = false;
  std::set<std::string> begun_ ABSL_GUARDED_BY(fetch_mutex_);  // keys
  std::map<std::string, std::function<void()>> ends_
      ABSL_GUARDED_BY(fetch_mutex_);
};

// Those under way, by number. Thread-safe.
class Steps {
 public:
  explicit Steps(DeviceName task) : task_(std::move(task)) {}
  ~Steps() { AbortAll(Cancelled("the worker is gone")); }

  // Made where it is not; `task`: what this one is called there.
  std::shared_ptr<StepRendezvous> Find(int64_t step, const DeviceName& task);
  std::shared_ptr<StepRendezvous> Find(int64_t step) {
    return Find(step, task_);
  }
  // Ends what waits in the step and forgets it.
  void CleanUp(int64_t step);
  // A step that nobody has run, and in which nobody waits any more, is
  // forgotten: strangers' keys make none that stay.
  void ForgetIdle(int64_t step);
  // From now on ForgetIdle does not forget it.
  void Hold(int64_t step);
  void AbortAll(const Status& why);
  size_t size() const;

 private:
  struct Step {
    std::shared_ptr<StepRendezvous> rendezvous;
    bool held = false;
  };

  const DeviceName task_;
  mutable Mutex mutex_;
  std::map<int64_t, Step> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
