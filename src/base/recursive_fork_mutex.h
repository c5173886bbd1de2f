// A ForkMutex that its holder may take again.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/fork_mutex.h"

namespace headrace {

// Held while code of the user's runs, for as long as that takes. A forked child
// finds it open, but for the thread that forked while it held it.
class ABSL_LOCKABLE RecursiveForkMutex {
 public:
  RecursiveForkMutex() = default;
  RecursiveForkMutex(const RecursiveForkMutex&) = delete;

  // Clang does not follow a lock that is taken at some calls alone.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const uint64_t me = ThisThread();
    // Nobody else stores this thread's number, so what another thread does
    // meanwhile does not matter.
    if (holder_.load(std::memory_order_relaxed) == me) {
      ++depth_;
      return;
    }
    mutex_.lock();
    holder_.store(me, std::memory_order_relaxed);
    depth_ = 1;
  }
  void unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (--depth_ > 0) return;
    holder_.store(0, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  // A number that no other thread has or had. (Threads of a forked child get
  // the system's ids of threads that it has not.)
  static uint64_t ThisThread() {
    static std::atomic<uint64_t> last{0};
    thread_local const uint64_t number = ++last;
    return number;
  }

  ForkMutex mutex_;
  std::atomic<uint64_t> holder_{0};
  int depth_ ABSL_GUARDED_BY(mutex_) = 0;  // of the holder's locks
};

}  // namespace headrace
