// How calls of queues, and of what else steps share, wait for each other.
#pragma once

#include <chrono>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "op/waiting.h"

namespace headrace {

// Waits for `changed`, or for so short a time that a stop is not felt to be
// late; then what CheckStop says. `mutex` is open meanwhile, also for
// CheckStop: a signal's handler may use what it guards. Callers look again at
// what they wait for.
inline Status AwaitChange(Mutex& mutex, CondVar& changed)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
  if (WaitingRefused()) return WouldWait();
  changed.WaitFor(mutex, std::chrono::milliseconds(20));
  MutexUnlock open(mutex);
  return CheckStop();
}

}  // namespace headrace
