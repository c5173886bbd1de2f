// RunSteps, of clients of ours: steps that run one behind the other are one
// call, as a call costs more than a small step. What is not begun can be had
// back, so that none waits behind one that takes long, or waits for it.
#pragma once

#include <map>
#include <memory>

#include "base/mutex.h"
#include "distributed/transport.h"
#include "headrace/master.pb.h"

namespace headrace::distributed {

// The steps of one call. Thread-safe.
class ManySteps {
 public:
  // None but the first begins behind `until`.
  explicit ManySteps(Clock::time_point until) : until_(until) {}

  // Whether the next one is to be begun; from then on it counts.
  bool Begin();
  // The one that was begun has ended; behind an error none is begun.
  void End(tensorflow::RunStepResponse done);
  // None is begun any more.
  void GiveBack(GiveBackStepsResponse* response);
  // Behind the last one.
  RunStepsResponse Take();

 private:
  const Clock::time_point until_;
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of what has ended
  RunStepsResponse ended_ ABSL_GUARDED_BY(mutex_);
};

// Those under way, by the numbers of their calls. Thread-safe.
class ManyStepsCalls {
 public:
  // While it lives the call is found.
  class Entry {
   public:
    Entry(ManyStepsCalls* all, int64_t request, Clock::time_point until);
    ~Entry();
    Entry(const Entry&) = delete;
    // False where another call has the number.
    bool ok() const { return added_; }
    ManySteps& steps() { return *steps_; }

   private:
    ManyStepsCalls* const all_;
    const int64_t request_;
    const std::shared_ptr<ManySteps> steps_;
    bool added_ = false;
  };

  // NotFound where there is no such call, or none any more.
  Status GiveBack(const GiveBackStepsRequest& request,
                  GiveBackStepsResponse* response);

 private:
  Mutex mutex_;
  std::map<int64_t, std::shared_ptr<ManySteps>> calls_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
