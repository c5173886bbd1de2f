#include "base/fork_mutex.h"

#include <pthread.h>
#include <unistd.h>

#include <new>
#include <vector>

namespace headrace {
namespace {

// 2,000 tries half a millisecond apart: a second, far longer than these locks
// are held, and short enough for a thread that holds one itself and would wait
// for ever.
constexpr int kTries = 2000;
constexpr useconds_t kBetween = 500;  // microseconds

std::atomic<uint32_t> forks{0};

// All of the process, and whether they are held for a fork.
struct Registry {
  Mutex mutex;
  std::vector<ProcessMutex*> all ABSL_GUARDED_BY(mutex);
  bool held ABSL_GUARDED_BY(mutex) = false;

  // All or none: threads take them in any order. Not analysed: no annotation
  // can name so many locks.
  bool TryAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i]->try_lock()) continue;
      // Holding some while waiting for the next could be the other half of a
      // deadlock.
      while (i > 0) all[--i]->unlock();
      return false;
    }
    return true;
  }

  void ReleaseAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // as TryAll
    for (ProcessMutex* m : all) m->unlock();
  }

  void BeforeFork() ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) {
    mutex.lock();
    // A thread that forks while it holds one itself goes on after a second.
    for (int i = 0; i < kTries && !held; ++i) {
      held = TryAll();
      if (!held) usleep(kBetween);
    }
  }
  void AfterFork() ABSL_UNLOCK_FUNCTION(mutex) {
    if (held) ReleaseAll();
    held = false;
    mutex.unlock();
  }
};

Registry& TheRegistry() {
  static Registry* const registry = [] {
    // Not analysed: the lock is held from one handler to the other.
    pthread_atfork(
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheRegistry().BeforeFork(); },
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS { TheRegistry().AfterFork(); },
        []() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          ++forks;
          TheRegistry().AfterFork();
        });
    return new Registry;
  }();
  return *registry;
}

}  // namespace

ProcessMutex::ProcessMutex() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  registry.all.push_back(this);
}

ForkMutex::ForkMutex() : forks_(Forks()) { TheRegistry(); }

uint32_t ForkMutex::Forks() { return forks.load(std::memory_order_relaxed); }

void ForkMutex::Renew() {
  static ProcessMutex* const renewing = new ProcessMutex;
  MutexLock lock(*renewing);
  if (forks_ == Forks()) return;  // another thread was first
  // A lock that a thread of the parent held can never be opened in the child:
  // it is made anew over the old one, which is not destroyed (that of a held
  // mutex is undefined).
  if (mutex_.try_lock()) {
    mutex_.unlock();
  } else {
    new (&mutex_) std::mutex;
  }
  forks_ = Forks();
}

}  // namespace headrace
