// Who may trace a function: one thread at a time, but for circles.
#pragma once

#include "base/mutex.h"
#include "base/status.h"

namespace headrace {

// Held while a function's body runs, for as long as that takes; its holder may
// take it again.
//
// Traces call functions, whose first calls are traces. So threads that trace
// functions which call each other could wait for each other for ever. The one
// that would close such a circle of waiters does not wait: it goes in beside
// the holder, both trace, and what they share must bear that at each call of
// the user's code. A forked child finds the lock open, but for the thread that
// forked while it held it. Thread-safe.
class ABSL_LOCKABLE TracingLock {
 public:
  TracingLock() = default;
  TracingLock(const TracingLock&) = delete;

  // Waits. Cancelled or DeadlineExceeded where the thread should stop
  // (CheckStop); the lock is not held then.
  Status Acquire();
  // The same where that needs no waiting.
  bool TryAcquire();
  // Once for each that was had.
  void Release();
};

}  // namespace headrace
