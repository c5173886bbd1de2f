// The rendezvous of a worker's steps.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/rendezvous.h"

namespace headrace::distributed {

// What each run of a graph takes from one other task, or gives it, where its
// nodes say so.
struct ExpectedKeys {
  DeviceName task;
  std::vector<RendezvousKey> keys;
};
using ExpectedKeysPtr = std::shared_ptr<const ExpectedKeys>;

// That of one step: what other tasks send is fetched from there when somebody
// here first asks for it.
class StepRendezvous : public LocalRendezvous,
                       public std::enable_shared_from_this<StepRendezvous> {
 public:
  // Begins to fetch the key's value; `done` is called once. What ends it.
  using Fetch =
      std::function<std::function<void()>(const RendezvousKey& key, Done done)>;

  // The same of several keys of one task, together: `done` has their places.
  using FetchMany = std::function<std::function<void()>(
      const ExpectedKeysPtr& expected,
      std::function<void(size_t, StatusOr<SentValue>)> done)>;

  // How values of other tasks than `task` come, which is what this one is
  // called in the step; the first one counts.
  void SetFetch(Fetch fetch, DeviceName task);
  // A value of another task that is here before anybody asks.
  Status Came(const RendezvousKey& key, SentValue value);
  // All these will be asked for: begins to fetch those that are not on their
  // way, where they are that many.
  void Expect(const ExpectedKeysPtr& expected, const FetchMany& fetch_many,
              size_t least = 1);
  StatusOr<bool> TryReceive(const RendezvousKey& key,
                            SentValue* value) override;
  void Await(const RendezvousKey& key, std::function<void()> ready) override;
  void Abort(Status why) override;

 private:
  // Unless the value is of this task, or on its way.
  void Begin(const RendezvousKey& key);
  void Fetched(const RendezvousKey& key, StatusOr<SentValue> value);
  // Keeps what ends a fetch that began under that name, or calls it.
  void KeepEnd(const std::string& name, std::function<void()> end);

  Mutex fetch_mutex_;
  DeviceName task_ ABSL_GUARDED_BY(fetch_mutex_);
  Fetch fetch_ ABSL_GUARDED_BY(fetch_mutex_);
  bool over_ ABSL_GUARDED_BY(fetch_mutex_) = false;
  std::set<std::string> begun_ ABSL_GUARDED_BY(fetch_mutex_);  // keys
  std::map<std::string, std::function<void()>> ends_
      ABSL_GUARDED_BY(fetch_mutex_);
};

// Those under way, by number. Thread-safe.
class Steps {
 public:
  ~Steps() { AbortAll(Cancelled("the worker is gone")); }

  // Made where it is not.
  std::shared_ptr<StepRendezvous> Find(int64_t step);
  // Ends what waits in the step and forgets it.
  void CleanUp(int64_t step);
  // A step that nobody has run, and in which nobody waits any more, is
  // forgotten: strangers' keys make none that stay.
  void ForgetIdle(int64_t step);
  // From now on ForgetIdle does not forget it, but CleanUpOf does.
  void Hold(int64_t step, const void* owner);
  // The same as CleanUp for all that are held for that owner.
  void CleanUpOf(const void* owner);
  void AbortAll(const Status& why);
  size_t size() const;

 private:
  struct Step {
    std::shared_ptr<StepRendezvous> rendezvous;
    bool held = false;
    const void* owner = nullptr;
  };

  mutable Mutex mutex_;
  std::map<int64_t, Step> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
