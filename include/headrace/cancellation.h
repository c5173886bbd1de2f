// Ending work early: on request, or after some time.
#pragma once

#include <chrono>
#include <memory>

#include "headrace/export.h"

namespace headrace {
class CancellationToken;
class StopScope;
}  // namespace headrace

namespace headrace::tf {

// A request to stop, which any number of calls may listen to. Copies are the
// same request. Thread-safe.
//
// Work that listens to it ends within about a tenth of a second (or with the
// library call under way, docs/design/engine.md), by an Error: kCancelled, or
// kDeadlineExceeded once the time is over. Each variable then has the value
// from before or after an assignment, never one in between; assignments that
// the call had made before stay.
class HR_API Cancellation {
 public:
  Cancellation();
  // Also stops by itself, so long after now. A time that is over already (zero
  // or less) stops work at the first place where it asks; times of more than a
  // hundred years are that long.
  explicit Cancellation(std::chrono::nanoseconds timeout);

  // From then on for ever: a request cannot be taken back, so each piece of
  // work that is to be stopped alone needs a Cancellation of its own. Returns
  // at once; does not wait for the work to end.
  void Cancel() const;
  // Whether it was asked for or the time is over. Cheap enough for a loop: an
  // atomic load and, with a time limit, the clock.
  bool cancelled() const;

 private:
  friend class CancellationScope;
  std::shared_ptr<CancellationToken> token_;
};

// While it lives, everything that its thread does listens to a request: ops,
// traced functions, gradients, datasets, training loops, and the pool's threads
// that help with them. Scopes nest (any of them may stop the work), and end on
// the thread that they began on, in the reverse order. Updates of a variable
// are not cut: the request takes effect behind them.
class HR_API CancellationScope {
 public:
  explicit CancellationScope(const Cancellation& cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

 private:
  const Cancellation cancellation_;
  const std::unique_ptr<StopScope> scope_;
};

}  // namespace headrace::tf
