// The rendezvous of a step within one process.
#pragma once

#include <deque>
#include <string>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "op/rendezvous.h"

namespace headrace {

// Thread-safe.
class LocalRendezvous : public Rendezvous {
 public:
  ~LocalRendezvous() override;
  Status Send(const RendezvousKey& key, SentValue value) override;
  StatusOr<bool> TryReceive(const RendezvousKey& key,
                            SentValue* value) override;
  void Await(const RendezvousKey& key, std::function<void()> ready) override;

  using Done = std::function<void(StatusOr<SentValue>)>;
  // Calls `done` with the value when it has come, or with the error of an
  // abort; perhaps at once. A number for Forget.
  int64_t ReceiveAsync(const RendezvousKey& key, Done done);
  // That `done` is not to be called any more: true where it was not and will
  // not be.
  bool Forget(const RendezvousKey& key, int64_t number);

  // All that waits, and all that comes later, ends with `why`, an error. The
  // first one counts. Values that nobody took are gone.
  virtual void Abort(Status why);

  // Whether nothing was sent that is still there, and nobody waits.
  bool idle() const;

 private:
  struct Waiter {
    int64_t number;
    Done done;                    // takes the value, or
    std::function<void()> ready;  // looks for it
  };
  struct Place {
    std::deque<SentValue> values;
    std::deque<Waiter> waiters;  // those that look wait beside values, too
  };

  mutable Mutex mutex_;
  HashMap<std::string, Place> places_ ABSL_GUARDED_BY(mutex_);
  Status aborted_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace headrace
