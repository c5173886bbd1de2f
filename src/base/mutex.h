// Locks that clang's thread safety analysis checks (tools/thread_safety.py):
// members say which lock guards them (ABSL_GUARDED_BY), functions which lock
// their caller holds (ABSL_EXCLUSIVE_LOCKS_REQUIRED).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace headrace {

// A std::mutex with annotations, at no cost. It is not absl::Mutex, which takes
// memory for each thread that waits and ends the process where there is none,
// and whose packaged build follows the order of locks at a cost of 90 ns a
// lock and is invisible to the thread sanitizer (docs/design/state.md).
class ABSL_LOCKABLE Mutex {
 public:
  constexpr Mutex() = default;
  Mutex(const Mutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    return mutex_.try_lock();
  }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a Mutex (ProcessMutex, ForkMutex) while it lives.
template <typename M>
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(M& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;

 private:
  M& mutex_;
};

// Abseil's ABSL_UNLOCK_FUNCTION does not tell the analysis that an object which
// lets a lock go takes it again.
#ifdef __clang__
#define HR_RELEASES(mutex) __attribute__((release_capability(mutex)))
#else
#define HR_RELEASES(mutex)
#endif

// Lets a held mutex go while it lives, and takes it again.
template <typename M>
class ABSL_SCOPED_LOCKABLE MutexUnlock {
 public:
  explicit MutexUnlock(M& mutex) HR_RELEASES(mutex) : mutex_(mutex) {
    mutex_.unlock();
  }
  ~MutexUnlock() ABSL_UNLOCK_FUNCTION() { mutex_.lock(); }
  MutexUnlock(const MutexUnlock&) = delete;

 private:
  M& mutex_;
};
#undef HR_RELEASES

// Waits may end early: callers look again at what they wait for.
class CondVar {
 public:
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    changed_.wait(held);
    held.release();
  }
  void WaitFor(Mutex& mutex, std::chrono::milliseconds time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    changed_.wait_for(held, time);
    held.release();
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace headrace
