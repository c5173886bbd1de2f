// Locks that a forked child does not find held by threads it has not.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/mutex.h"

namespace headrace {

// A mutex for state of the whole process, held for moments. It is taken around
// a fork, so that the child finds it open and the state whole. Never destroyed:
// a global or leaked object.
class ABSL_LOCKABLE ProcessMutex {
 public:
  ProcessMutex();
  ProcessMutex(const ProcessMutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock();
  }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// A mutex of one object that may be held for long, while a graph is planned. It
// is open to a forked child, which finds the object as it was: its holder must
// change it in one step, at the end.
class ABSL_LOCKABLE ForkMutex {
 public:
  ForkMutex();
  ForkMutex(const ForkMutex&) = delete;

  // One relaxed load where nothing was forked since.
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (forks_.load(std::memory_order_relaxed) != Forks()) [[unlikely]]
      Renew();
    mutex_.lock();
  }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  // How many forks led to this process.
  static uint32_t Forks();
  void Renew();

  std::mutex mutex_;
  std::atomic<uint32_t> forks_;
};

}  // namespace headrace
