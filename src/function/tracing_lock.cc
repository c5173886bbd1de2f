#include "function/tracing_lock.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/cancellation.h"
#include "base/fork_mutex.h"

namespace headrace {
namespace {

// So often a thread that waits looks whether it should stop.
constexpr std::chrono::milliseconds kBetweenLooks(50);

// A number that no other thread has or had, in forked children neither.
uint64_t NumberOfThread() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

// How many forks led to this process, and the thread that the last one left.
std::atomic<uint32_t> forks_passed{0};
std::atomic<uint64_t> thread_of_fork{0};

// A thread as of the process that it was met in.
struct TracingThread {
  bool IsHere() const {
    return fork == forks_passed || number == thread_of_fork;
  }

  uint64_t number = NumberOfThread();
  uint32_t fork = forks_passed;
};

// A thread in Acquire.
class TracingWaiter {
 public:
  explicit TracingWaiter(const TracingLock* lock) : lock_(lock) {}

  const TracingThread& thread() const { return thread_; }
  const TracingLock* lock() const { return lock_; }

  void Sleep() {
    MutexLock lock(mutex_);
    if (!woken_) changed_.WaitFor(mutex_, kBetweenLooks);
    woken_ = false;
  }
  void Wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyAll();
  }

 private:
  const TracingThread thread_;
  const TracingLock* const lock_;
  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

// Who holds and who waits, of all locks: few, as traces are rare.
class TracingTable {
 public:
  TracingTable() {
    pthread_atfork(nullptr, nullptr, [] {
      ++forks_passed;
      thread_of_fork = NumberOfThread();
    });
  }

  bool TryAcquire(const TracingLock* lock) {
    MutexLock held(mutex_);
    return Enter(lock);
  }
  // The same; where it has to wait, `waiter` is listed.
  bool TryAcquireOrList(TracingWaiter* waiter) {
    MutexLock held(mutex_);
    if (Enter(waiter->lock())) return true;
    waiters_.push_back(waiter);
    return false;
  }
  // The same of one that is listed, and no more if that works.
  bool TryAcquireListed(TracingWaiter* waiter) {
    MutexLock held(mutex_);
    if (!Enter(waiter->lock())) return false;
    Drop(waiter);
    return true;
  }
  void Unlist(TracingWaiter* waiter) {
    MutexLock held(mutex_);
    Drop(waiter);
  }
  void Release(const TracingLock* lock) {
    MutexLock held(mutex_);
    const auto mine = Find(lock);
    if (mine == holds_.end() || --mine->depth > 0) return;
    holds_.erase(mine);
    for (TracingWaiter* w : waiters_) {
      if (w->lock() == lock) w->Wake();
    }
  }

 private:
  struct Hold {
    const TracingLock* lock;
    TracingThread thread;
    int depth;
  };

  // This thread's hold of `lock`, or the end.
  std::vector<Hold>::iterator Find(const TracingLock* lock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t me = NumberOfThread();
    return std::find_if(holds_.begin(), holds_.end(), [&](const Hold& h) {
      return h.lock == lock && h.thread.number == me;
    });
  }

  bool Enter(const TracingLock* lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ForgetThreadsOfParent();
    if (const auto mine = Find(lock); mine != holds_.end()) {
      ++mine->depth;
      return true;
    }
    const TracingThread me;
    bool is_free = true;
    for (const Hold& h : holds_) is_free &= h.lock != lock;
    if (!is_free && !WaitsFor(lock, me.number)) return false;
    holds_.push_back({lock, me, 1});
    return true;
  }

  // Whether a holder of `lock` waits for `thread`, through whatever chain. It
  // ends, as nobody waits who would close a circle.
  bool WaitsFor(const TracingLock* lock, uint64_t thread) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const Hold& h : holds_) {
      if (h.lock != lock) continue;
      if (h.thread.number == thread) return true;
      for (const TracingWaiter* w : waiters_) {
        if (w->thread().number != h.thread.number) continue;
        if (WaitsFor(w->lock(), thread)) return true;
      }
    }
    return false;
  }

  void Drop(const TracingWaiter* waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiters_.erase(std::remove(waiters_.begin(), waiters_.end(), waiter),
                   waiters_.end());
  }

  // In a forked child those threads are not that held and waited.
  void ForgetThreadsOfParent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (seen_forks_ == forks_passed) return;
    seen_forks_ = forks_passed;
    holds_.erase(
        std::remove_if(holds_.begin(), holds_.end(),
                       [](const Hold& h) { return !h.thread.IsHere(); }),
        holds_.end());
    waiters_.erase(std::remove_if(waiters_.begin(), waiters_.end(),
                                  [](const TracingWaiter* w) {
                                    return !w->thread().IsHere();
                                  }),
                   waiters_.end());
  }

  ProcessMutex mutex_;
  std::vector<Hold> holds_ ABSL_GUARDED_BY(mutex_);
  std::vector<TracingWaiter*> waiters_ ABSL_GUARDED_BY(mutex_);
  uint32_t seen_forks_ ABSL_GUARDED_BY(mutex_) = 0;
};

TracingTable& TheTracingTable() {
  static auto* table = new TracingTable;
  return *table;
}

// What CheckStop raises must not leave the waiter listed.
class ListedWaiter {
 public:
  explicit ListedWaiter(TracingWaiter* waiter) : waiter_(waiter) {}
  ~ListedWaiter() {
    if (waiter_) TheTracingTable().Unlist(waiter_);
  }
  ListedWaiter(const ListedWaiter&) = delete;
  void Forget() { waiter_ = nullptr; }

 private:
  TracingWaiter* waiter_;
};

}  // namespace

bool TracingLock::TryAcquire() { return TheTracingTable().TryAcquire(this); }

Status TracingLock::Acquire() {
  TracingTable& table = TheTracingTable();
  TracingWaiter waiter(this);
  if (table.TryAcquireOrList(&waiter)) return OkStatus();
  ListedWaiter listed(&waiter);
  do {
    waiter.Sleep();
    HR_RETURN_IF_ERROR(CheckStop());
  } while (!table.TryAcquireListed(&waiter));
  listed.Forget();
  return OkStatus();
}

void TracingLock::Release() { TheTracingTable().Release(this); }

}  // namespace headrace
