// Calls that wait for a worker: the rules of a coordinator, of whatever the
// calls are.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "base/status.h"

namespace headrace::distributed {

// Something that any worker may do, at least once.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;
  // Once: OK when it has run, its error, or Cancelled where it will not run.
  virtual void Settle(const Status& s) = 0;
};
using QueuedCallPtr = std::shared_ptr<QueuedCall>;

// Calls that wait or run. After the first one that fails the others are
// cancelled, and the next Put, Wait or Done gives its error, once. Thread-safe.
class CallQueue {
 public:
  // As many calls wait at most; Put waits for room. TensorFlow's number.
  static constexpr size_t kMostWaiting = size_t{256} * 1024;

  struct Taken {
    QueuedCallPtr call;
    // Of all calls since the last error: what runs listens to it.
    std::shared_ptr<CancellationToken> token;
  };

  Status Put(QueuedCallPtr call);
  // The next ones, waited for; none where there will be none. The first, and
  // those behind it as long as `joins` has the next one go with those before
  // it, of so many that wait; under a lock. Null: one alone.
  using Joins = std::function<bool(const std::vector<Taken>& taken,
                                   const Taken& next, size_t waiting)>;
  std::vector<Taken> Take(const Joins& joins = nullptr);
  // Each of Take's ends by one of these. Their worker was lost, or has not
  // begun them: they are the next, in that order.
  void PutBack(const std::vector<Taken>& taken);
  void Finished(const Taken& taken);
  // Where an earlier error has had it cancelled, nothing follows from its own.
  void Failed(const Taken& taken, const Status& error);

  // Until all have run, as CheckStop allows.
  Status Wait();
  StatusOr<bool> Done();
  // Nobody takes a call any more: for that reason, which Put and Wait then say.
  void Stop(const Status& why);
  bool stopped() const;

 private:
  Status TakeError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::deque<QueuedCallPtr> CancelAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OneEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  // Who waits for a call, for room, and for the end of all.
  CondVar there_, room_, ended_;
  std::deque<Taken> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  Status error_ ABSL_GUARDED_BY(mutex_), stopped_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<CancellationToken> token_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<CancellationToken>();
};

}  // namespace headrace::distributed
