#include "base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/cpu_count.h"
#include "base/flush_denormals.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "base/sandbox.h"
#include "base/threads.h"

namespace headrace {
namespace {

// Estimated work in nanoseconds. Handing a loop to a worker that spins takes
// 0.2-0.7 us, and caches change hands: below 4 us a loop runs on its caller
// alone. Waking a sleeper takes 17 us of the caller's time, and 25-75 us until
// it runs: below 40 us that is not worth it.
constexpr double kWorthSharingNs = 4000;
constexpr double kWorthWakingNs = 40000;
// How long a worker without work spins before it sleeps, and a caller for its
// workers: longer than the gaps between the steps of a training. 400 us in
// place of 40, and no sleeper woken beside a spinner, took train.transformer
// from 1.32 to 0.97 of torch's time (docs/roadmap.md).
constexpr auto kSpin = std::chrono::microseconds(400);
// More than any machine has processors; bounds what HEADRACE_NUM_THREADS and
// set_*_threads may ask for.
constexpr int kMaxThreads = 1024;
// After the system gave no thread, it is asked again this much later.
constexpr auto kAskAgain = std::chrono::seconds(1);
// Chunks take about this long at most, as a stop is looked for between them;
// loops that are shorter in all are not stopped.
constexpr double kLongChunkNs = 5e6;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

thread_local int thread_limit = kMaxThreads;

// One parallel loop: chunks are handed out by `next`. Lives on its caller's
// stack; the caller leaves only when no worker is inside.
struct ParallelLoop {
  absl::FunctionRef<void(int64_t)> chunk;
  const int64_t chunks;
  const int max_workers;
  const bool flushes = FlushDenormals::On();  // the caller's arithmetic
  std::atomic<int64_t> next{0};
  std::atomic<int> workers{0};  // raised under the pool's lock only
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // of the first chunk that threw

  // Never throws: an error ends the loop and waits for the caller.
  void Work() {
    try {
      for (;;) {
        // Relaxed: only the number counts. What chunks wrote is made visible by
        // `workers` going to 0 (release and acquire).
        const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= chunks) return;
        chunk(i);
      }
    } catch (...) {
      // Nobody begins a further chunk; those under way end by themselves.
      next.store(chunks, std::memory_order_relaxed);
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  bool Open() const {
    return next.load(std::memory_order_relaxed) < chunks &&
           workers.load(std::memory_order_relaxed) < max_workers;
  }
};

// Nobody waits for a job, so nobody could be told what it threw.
void RunJob(const std::function<void()>& job) {
  Guarded("a background job", [&job] {
    job();
    return OkStatus();
  }).IgnoreError();
}

// The workers. Never destroyed: they may run until the process ends.
class Pool {
 public:
  explicit Pool(int threads) { Resize(threads); }

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void Resize(int threads) {
    MutexLock lock(mutex_);
    threads_.store(threads, std::memory_order_relaxed);
    if (alive_.size() < static_cast<size_t>(threads)) alive_.resize(threads);
    StartMissing();
  }

  void Run(ParallelLoop& loop, bool wake) {
    {
      MutexLock lock(mutex_);
      if (short_) [[unlikely]]
        AskAgain();
      loops_.push_back(&loop);
    }
    // Behind the list's change, in this order: a worker that saw the old epoch
    // and then found nothing must see the new one before it sleeps.
    epoch_.fetch_add(1);
    // Workers that spin come by themselves. A sleeper woken beside them would
    // only take the caller's processor.
    if (wake) Wake(loop.max_workers - spinners_.load());
    loop.Work();
    {
      MutexLock lock(mutex_);
      // Off the list before waiting, so that no further worker comes in.
      loops_.erase(std::find(loops_.begin(), loops_.end(), &loop));
    }
    WaitFor(loop);
    if (loop.error) [[unlikely]]
      std::rethrow_exception(std::move(loop.error));
  }

  // False, and `job` untouched, where there is no thread to run it.
  bool Schedule(std::function<void()>& job) {
    {
      MutexLock lock(mutex_);
      if (short_) [[unlikely]]
        AskAgain();
      if (std::find(alive_.begin(), alive_.end(), true) == alive_.end()) {
        return false;
      }
      try {
        jobs_.push_back(std::move(job));
      } catch (const std::bad_alloc&) {
        return false;
      }
    }
    epoch_.fetch_add(1);
    Wake(1);
    return true;
  }

 private:
  // Where the system gives no thread the pool does with those that run, if need
  // be with its callers alone.
  void StartMissing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    short_ = false;
    for (int i = 0; i < threads(); ++i) {
      if (alive_[i]) continue;
      const AdoptedSandbox outside;  // it serves everybody
      StatusOr<std::thread> thread = StartThread([this, i] { RunWorker(i); });
      if (!thread.ok()) {
        short_ = true;
        ask_at_ = std::chrono::steady_clock::now() + kAskAgain;
        return;
      }
      thread->detach();
      alive_[i] = true;
    }
  }
  void AskAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::chrono::steady_clock::now() >= ask_at_) StartMissing();
  }

  void Wake(int n) {
    n = std::min(n, sleepers_.load());
    for (int i = 0; i < n; ++i) epoch_.notify_one();
  }

  void WaitFor(const ParallelLoop& loop) {
    const auto gone = [&loop] {
      return loop.workers.load(std::memory_order_acquire) == 0;
    };
    if (SpinUntil(gone)) return;
    // Announced before left_ is read: a worker that leaves behind that either
    // changes left_, and the wait returns at once, or sees the waiter.
    waiters_.fetch_add(1);
    for (;;) {
      const uint32_t left = left_.load();
      if (gone()) break;
      left_.wait(left);
    }
    waiters_.fetch_sub(1);
  }

  template <typename Condition>
  static bool SpinUntil(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      // The clock costs 25 ns: it is read once for 32 looks.
      for (int i = 0; i < 32; ++i) {
        if (condition()) return true;
        Pause();
      }
    } while (std::chrono::steady_clock::now() < end);
    return condition();
  }

  void RunWorker(int index) {
    for (;;) {
      const uint32_t epoch = epoch_.load();
      if (Retire(index)) return;
      if (RunSome()) continue;
      const auto changed = [&] { return epoch_.load() != epoch; };
      // Only as many spin as can help a caller that runs.
      // One fewer than threads: the caller is the last of them, and another
      // spinner would only take a processor from it.
      const bool may_spin = spinners_.fetch_add(1) < threads() - 1;
      const bool found = may_spin && SpinUntil(changed);
      spinners_.fetch_sub(1);
      if (found) continue;
      // Counted before the wait and after the spin, so that Wake() neither
      // misses a sleeper nor wakes for spinners.
      sleepers_.fetch_add(1);
      epoch_.wait(epoch);
      sleepers_.fetch_sub(1);
    }
  }

  // Whether worker `index` is one too many and must end.
  bool Retire(int index) {
    if (index < threads()) return false;
    {
      MutexLock lock(mutex_);
      if (index < threads()) return false;
      alive_[index] = false;
    }
    epoch_.notify_one();  // the wake may have been meant for another
    return true;
  }

  // Runs one loop's chunks or one job; false if there was none.
  bool RunSome() {
    std::function<void()> job;
    if (ParallelLoop* loop = TakeLoop(&job)) {
      {
        const FlushDenormals as_its_caller(loop->flushes);
        loop->Work();
      }
      loop->workers.fetch_sub(1, std::memory_order_release);
      // *loop may be gone from here on.
      left_.fetch_add(1);
      // A system call that nobody needs while callers still spin.
      if (waiters_.load() > 0) left_.notify_all();
      return true;
    }
    if (!job) return false;
    RunJob(job);
    return true;
  }
  // A loop, with this worker inside, or null and the next job, if any.
  ParallelLoop* TakeLoop(std::function<void()>* job) {
    MutexLock lock(mutex_);
    // Loops before jobs: a caller waits for a loop, nobody for a job. Of
    // several loops the oldest, which nested ones lie inside of.
    for (ParallelLoop* loop : loops_) {
      if (!loop->Open()) continue;
      loop->workers.fetch_add(1, std::memory_order_relaxed);
      return loop;
    }
    if (jobs_.empty()) return nullptr;
    *job = std::move(jobs_.front());
    jobs_.pop_front();
    return nullptr;
  }

  alignas(64) std::atomic<uint32_t> epoch_{0};  // moves when work arrives
  alignas(64) std::atomic<uint32_t> left_{0};   // moves when a worker leaves
  std::atomic<int> waiters_{0};                 // callers asleep on left_
  std::atomic<int> sleepers_{0};                // workers asleep on epoch_
  std::atomic<int> spinners_{0};
  std::atomic<int> threads_{0};
  Mutex mutex_;
  std::vector<ParallelLoop*> loops_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> alive_ ABSL_GUARDED_BY(mutex_);
  bool short_ ABSL_GUARDED_BY(mutex_) = false;  // of threads
  std::chrono::steady_clock::time_point ask_at_ ABSL_GUARDED_BY(mutex_);
};

Mutex pool_mutex;  // held while a pool is made, and across fork
std::atomic<Pool*> pool{nullptr};
std::atomic<int> wanted_threads{0};
std::atomic<UserThreadPool*> user_pool{nullptr};
std::atomic<InlineRunner> inline_runner{nullptr};

void InstallForkHandlers() {
  static const int installed = pthread_atfork(
      []() ABSL_EXCLUSIVE_LOCK_FUNCTION(pool_mutex) { pool_mutex.lock(); },
      []() ABSL_UNLOCK_FUNCTION(pool_mutex) { pool_mutex.unlock(); },
      []() ABSL_UNLOCK_FUNCTION(pool_mutex) {
        // The workers did not come along; the old pool is left
        // as it is.
        pool.store(nullptr);
        pool_mutex.unlock();
      });
  (void)installed;
}

int ConfiguredThreads() {
  const int wanted = wanted_threads.load();
  return wanted > 0 ? wanted : DefaultNumThreads();
}

Pool& ThePool() {
  Pool* p = pool.load(std::memory_order_acquire);
  if (p) return *p;
  InstallForkHandlers();
  MutexLock lock(pool_mutex);
  p = pool.load();
  if (!p) {
    p = new Pool(ConfiguredThreads());
    pool.store(p, std::memory_order_release);
  }
  return *p;
}

// A loop on a user's pool. Helpers that start late find nothing to do, so the
// state is shared and the caller waits only for those that have begun.
void RunOnUserPool(UserThreadPool& user, int64_t chunks, int helpers,
                   absl::FunctionRef<void(int64_t)> chunk) {
  struct State {
    absl::FunctionRef<void(int64_t)> chunk;
    const int64_t chunks;
    const bool flushes = FlushDenormals::On();  // the caller's arithmetic
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> done{0};  // ended, or never to begin
    std::atomic<bool> failed{false};
    std::exception_ptr error;  // of the first chunk that threw
    void Work() {
      const FlushDenormals as_its_caller(flushes);
      for (int64_t i; (i = next.fetch_add(1)) < chunks;) {
        int64_t ended = 1;
        try {
          chunk(i);
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
          ended += std::max<int64_t>(chunks - next.exchange(chunks), 0);
        }
        if (done.fetch_add(ended) + ended == chunks) done.notify_all();
      }
    }
  };
  auto state = std::shared_ptr<State>(new State{chunk, chunks});
  try {
    for (int i = 0; i < helpers; ++i) {
      user.Schedule([state] { state->Work(); });
    }
  } catch (const std::exception&) {
    // Those that it took help, the caller does the rest.
  }
  state->Work();
  for (int64_t d; (d = state->done.load()) < chunks;) state->done.wait(d);
  // A helper may end later than the caller: the exception goes with the caller.
  if (state->error) std::rethrow_exception(std::move(state->error));
}

// Runs chunk(0 .. chunks-1) on up to `threads` threads.
void RunAll(int64_t chunks, int threads, double total_ns,
            absl::FunctionRef<void(int64_t)> chunk) {
  // As many helpers as the work pays for, each with at least kWorthSharingNs.
  const int helpers = static_cast<int>(std::min<double>(
      std::min<int64_t>(threads, chunks) - 1, total_ns / kWorthSharingNs));
  if (helpers <= 0) {
    for (int64_t i = 0; i < chunks; ++i) chunk(i);
    return;
  }
  if (UserThreadPool* user = user_pool.load(std::memory_order_acquire)) {
    return RunOnUserPool(*user, chunks, helpers, chunk);
  }
  ParallelLoop loop{chunk, chunks, helpers};
  ThePool().Run(loop, total_ns >= kWorthWakingNs);
}

// As RunAll; throws Stopped where the caller's work should stop before all
// chunks have run.
void RunStoppable(int64_t chunks, int threads, double total_ns,
                  absl::FunctionRef<void(int64_t)> chunk) {
  if (total_ns < kLongChunkNs || !LoopsMayStop()) {
    return RunAll(chunks, threads, total_ns, chunk);
  }
  const StopSources sources = StopSources::OfThisThread();
  RunAll(chunks, threads, total_ns, [&](int64_t i) {
    const AdoptedStops adopted(sources);
    StopPoint();
    chunk(i);
  });
}

// The same; helpers are in the caller's sandboxes.
void RunChunks(int64_t chunks, int threads, double total_ns,
               absl::FunctionRef<void(int64_t)> chunk) {
  const SandboxPlace place = SandboxPlace::OfThisThread();
  if (!place.inside()) [[likely]]
    return RunStoppable(chunks, threads, total_ns, chunk);
  RunStoppable(chunks, threads, total_ns, [&](int64_t i) {
    const AdoptedSandbox adopted(place);
    chunk(i);
  });
}

}  // namespace

int DefaultNumThreads() {
  static const int threads = [] {
    if (const char* text = std::getenv("HEADRACE_NUM_THREADS")) {
      const long n = std::strtol(text, nullptr, 10);
      if (n >= 1) return static_cast<int>(std::min<long>(n, kMaxThreads));
    }
    return AvailableCpus();
  }();
  return threads;
}

int NumThreads() {
  const UserThreadPool* user = user_pool.load(std::memory_order_acquire);
  const int n = user ? user->NumThreads() : ConfiguredThreads();
  return std::max(1, std::min(n, thread_limit));
}

void SetNumThreads(int n) {
  wanted_threads.store(std::clamp(n, 0, kMaxThreads));
  MutexLock lock(pool_mutex);
  if (Pool* p = pool.load()) p->Resize(ConfiguredThreads());
}

void SetUserThreadPool(UserThreadPool* p) {
  user_pool.store(p, std::memory_order_release);
}

ScopedThreadLimit::ScopedThreadLimit(int n) : saved_(thread_limit) {
  thread_limit = std::max(1, std::min(n, saved_));
}
ScopedThreadLimit::~ScopedThreadLimit() { thread_limit = saved_; }

void ParallelFor(int64_t n, double ns_per_item,
                 absl::FunctionRef<void(int64_t, int64_t)> fn) {
  if (n <= 0) return;
  const double total = static_cast<double>(n) * ns_per_item;
  if (n == 1 || total < kWorthSharingNs) return fn(0, n);
  const int threads = NumThreads();
  // On one thread chunks serve stops alone.
  if (threads == 1 && total < 2 * kLongChunkNs) return fn(0, n);
  // A few chunks a thread even out unequal speeds; none is too small to pay,
  // and none so large that a stop would wait for it.
  const double by_cost = total / (kWorthSharingNs / 2);
  const double wanted = threads == 1 ? 1.0 : 4.0 * threads;
  const int64_t chunks =
      static_cast<int64_t>(std::min({static_cast<double>(n), by_cost,
                                     std::max(wanted, total / kLongChunkNs)}));
  const int64_t base = n / chunks, extra = n % chunks;
  RunChunks(chunks, threads, total, [&](int64_t i) {
    const int64_t begin = i * base + std::min(i, extra);
    fn(begin, begin + base + (i < extra));
  });
}

void ParallelBlocks(int64_t n, int64_t block_size, double ns_per_item,
                    absl::FunctionRef<void(int64_t, int64_t, int64_t)> fn) {
  if (n <= 0) return;
  const int64_t blocks = n / block_size + (n % block_size != 0);
  const double total = static_cast<double>(n) * ns_per_item;
  const int threads = total < kWorthSharingNs ? 1 : NumThreads();
  RunChunks(blocks, threads, total, [&](int64_t i) {
    fn(i, i * block_size,
       std::min(n - i * block_size, block_size) + i * block_size);
  });
}

int64_t FixedBlockSize(int64_t n) {
  // At least 4,096 elements a block, some microseconds of work, and at most
  // 1,024 blocks, whose partial results fit in the cache; doubling keeps sizes
  // a power of two. A function of n alone: sums in fixed blocks have the same
  // bits on any number of threads.
  int64_t size = 4096;
  while (size < n / 1024 + (n % 1024 != 0)) size *= 2;
  return size;
}

void SetInlineRunner(InlineRunner runner) { inline_runner.store(runner); }

void Schedule(std::function<void()> job) {
  // Destructors schedule what takes long, so nothing is thrown from here: a
  // job that no pool takes runs at once.
  bool taken = false;
  Guarded("handing a job on", [&] {
    if (InSandbox()) [[unlikely]]
      job = [inside = CarriedSandboxes(), job] { inside.Run(job); };
    if (UserThreadPool* user = user_pool.load(std::memory_order_acquire)) {
      user->Schedule(job);
      taken = true;
    } else {
      taken = ThePool().Schedule(job);
    }
    return OkStatus();
  }).IgnoreError();
  if (taken) return;
  const InlineRunner around = inline_runner.load();
  if (around == nullptr) return RunJob(job);
  around([&job] { RunJob(job); });
}

}  // namespace headrace
