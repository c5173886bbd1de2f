// RunSteps, and RunCalls of eager contexts, of clients of ours: steps that run
// one behind the other are one call, as a call costs more than a small step.
// What they give goes out as they end, so that a client whose master dies has
// all but the last. What is not begun can be had back, so that none waits
// behind one that takes long, or waits for it.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"
#include "headrace/master.pb.h"

namespace headrace::distributed {

// The steps of one call. Thread-safe.
class ManySteps : public std::enable_shared_from_this<ManySteps> {
 public:
  // None but the first of `count` begins behind `until`.
  ManySteps(std::shared_ptr<ServerCall> call, int count,
            Clock::time_point until)
      : call_(std::move(call)), count_(count), until_(until) {}

  // Whether the next one is to be begun; from then on it counts.
  bool Begin();
  // The one that was begun has ended; behind an error none is begun.
  void End(tensorflow::RunStepResponse done);
  void End(const Status& error);
  // Behind the last one: answers the call.
  void Finish(const Status& s);
  // None is begun any more: how many are.
  int GiveBack();

 private:
  void Send();
  void Sent(bool goes_on);

  const std::shared_ptr<ServerCall> call_;
  const int count_;
  const Clock::time_point until_;
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // none is begun any more
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_sending_ ABSL_GUARDED_BY(mutex_) = false;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;        // of ended_
  RunStepsResponse ended_ ABSL_GUARDED_BY(mutex_);  // and not sent
};

// Those under way, by the numbers of their calls. Thread-safe.
class ManyStepsCalls {
 public:
  // The steps of a call, until Remove; Aborted where another call has the
  // number.
  StatusOr<std::shared_ptr<ManySteps>> Begin(
      const std::shared_ptr<ServerCall>& call, int64_t request, int count,
      int64_t begin_within_us);
  void Remove(int64_t request);
  // NotFound where there is no such call, or none any more.
  Status GiveBack(const GiveBackStepsRequest& request,
                  GiveBackStepsResponse* response);

 private:
  Mutex mutex_;
  std::map<int64_t, std::shared_ptr<ManySteps>> calls_ ABSL_GUARDED_BY(mutex_);
};

// Has `run`, on a thread that may wait, begin and end the steps of a call; what
// it gives is an error of the call itself. Within it their number is in
// `calls`, which lives as long as `run`. Aborted where another one's is.
void RunManySteps(const std::shared_ptr<ServerCall>& call,
                  ManyStepsCalls* calls, int64_t request, int count,
                  int64_t begin_within_us,
                  std::function<Status(ManySteps& steps)> run);

}  // namespace headrace::distributed
