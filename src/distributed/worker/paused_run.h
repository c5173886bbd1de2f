// A run of a graph that has a thread only while it need not wait: a task that
// others wait for serves many with the thread that reads their requests.
#pragma once

#include <functional>
#include <memory>

#include "base/cancellation.h"
#include "base/job_threads.h"
#include "base/mutex.h"
#include "distributed/transport.h"
#include "distributed/worker/steps.h"
#include "runtime/executable.h"

namespace headrace::distributed {

// Has the transport's thread call a function soon (ServerCall::Later and
// Channel::Later); false where it does not.
using Later = std::function<bool(std::function<void()>)>;

// That of a call. The call, which has what ends the run, is kept by others.
inline Later LaterOf(const std::shared_ptr<ServerCall>& call) {
  return [weak = std::weak_ptr(call)](std::function<void()> f) {
    const auto call = weak.lock();
    return call && call->Later(std::move(f));
  };
}

// Calls `f` soon, not within this where that can be: on a thread of its own
// where the transport does not, here where the system has none.
inline void GoOnLater(const Later& later, const std::function<void()>& f) {
  if (!later(f) && !RunOnOwnThread(f).ok()) f();
}

// Its place with a worker, which begins it. Thread-safe.
class PausedRun : public RunHost {
 public:
  explicit PausedRun(Later later) : later_(std::move(later)) {}

  // Before it begins: where its ends of edges meet others.
  void MeetsIn(std::shared_ptr<StepRendezvous> rendezvous) {
    rendezvous_ = std::move(rendezvous);
  }
  // When it has begun.
  void Is(const std::shared_ptr<PausingRun>& run) {
    {
      MutexLock lock(mutex_);
      run_ = run;
    }
    if (token_.cancelled()) run->Poke();
  }
  // Ends it as soon as what it does now allows. At any time.
  void Stop() {
    token_.Cancel();
    std::shared_ptr<PausingRun> run;
    {
      MutexLock lock(mutex_);
      run = run_.lock();
    }
    if (run) run->Poke();
  }

  void Around(absl::FunctionRef<void()> part) override {
    const StopScope stop(&token_);
    const RendezvousScope meeting(rendezvous_.get());
    part();
  }
  void GoOn(std::function<void()> part) override { GoOnLater(later_, part); }

 private:
  const Later later_;
  std::shared_ptr<StepRendezvous> rendezvous_;
  CancellationToken token_;
  Mutex mutex_;
  std::weak_ptr<PausingRun> run_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
