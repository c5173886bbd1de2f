// CondVar (base/mutex.h) for waits that are shorter than its milliseconds.
#pragma once

#include <chrono>
#include <condition_variable>

#include "base/mutex.h"

namespace headrace {

// Costs a lock of its own at each call. Waits may end early: callers look again
// at what they wait for.
class TimedCondVar {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed_.wait(mutex);
  }
  void WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed_.wait_until(mutex, time);
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable_any changed_;
};

}  // namespace headrace
