// Steps of one run that may wait, on threads of their own.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "absl/functional/function_ref.h"
#include "base/cancellation.h"

namespace headrace {

// How many steps that keep a processor busy (those that call Python) a run has
// under way at a time, at most: sessions say so with
// inter_op_parallelism_threads. Others, which wait for queues, take no
// processor. Of a thread while this lives; 0: the default.
class InterOpScope {
 public:
  explicit InterOpScope(int threads);
  ~InterOpScope();
  InterOpScope(const InterOpScope&) = delete;
  InterOpScope& operator=(const InterOpScope&) = delete;
  // In force on this thread, at least 1.
  static int Threads();
  // Sets the default of the process; 0: the system's.
  static void SetDefault(int threads);

 private:
  const int saved_;
};

// For one thread at a time, the run's own, which starts steps and takes note of
// their ends. Steps listen to `sources`, which must stay until all have ended.
class WaitingSteps {
 public:
  explicit WaitingSteps(StopSources sources = StopSources::OfThisThread());
  // Ends all that is under way, and waits for it.
  ~WaitingSteps();
  WaitingSteps(const WaitingSteps&) = delete;
  WaitingSteps& operator=(const WaitingSteps&) = delete;

  // Runs `work` for the step `key` on another thread, at once, or, where `busy`
  // and InterOpScope's number are under way, when one of these has ended.
  void Start(int key, bool busy, std::function<Status()> work);
  // A step that takes no thread: `begin` is given what is to be called, on any
  // thread and even behind this object's life, when the step is to be tried
  // again.
  void Await(int key,
             absl::FunctionRef<void(std::function<void()> ready)> begin);
  // Whether steps were started that Next has not told of.
  bool any() const {
    return under_way_ > 0 || !awaited_.empty() || !later_.empty();
  }
  struct Ended {
    int key = 0;
    Status status;
    bool again = false;  // of Await: it has not ended, but is to be tried
  };
  // Waits for the next step to end; any() must hold. When the run is to stop,
  // that is Cancel's, with what stop() says.
  Ended Next();
  // The same without waiting: nothing where none has ended; then `wake` is
  // called once, on any thread, when another look is worth it.
  std::optional<Ended> Poll(const std::function<void()>& wake);
  // Makes a look worth it, as the run is to stop. On any thread.
  void Poke() const;
  // Ends the steps under way and starts no more: these and those that wait for
  // their turn end with Cancelled. Which status then is an answer to this:
  void Cancel();
  bool EndedByCancel(const Status& s) const {
    return cancelled_ && absl::IsCancelled(s);
  }
  // OK, or why the run was to stop.
  const Status& stop() const { return stop_; }

 private:
  struct Shared;
  struct Job {
    int key = 0;
    bool busy = false;
    std::function<Status()> work;
  };
  void Run(Job job);
  // What has ended, if anything has.
  std::optional<Ended> Take();
  // Whether what the thread of the run does is to stop; then Cancel's.
  void LookForStop();

  const std::shared_ptr<Shared> shared_;
  const int most_busy_;
  int under_way_ = 0, busy_ = 0;
  std::set<int> awaited_;  // keys
  bool cancelled_ = false;
  Status stop_;
  std::deque<Job> later_;
};

}  // namespace headrace
