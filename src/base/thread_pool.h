// The one thread pool of a process: parallel loops and background jobs.
//
// The calling thread always works too, so nothing here can deadlock by
// nesting: a loop inside a loop, or inside a job, finishes even when every
// worker is busy, and never makes more threads. Workers look for work for
// about 400 us after the last one, then sleep.
//
// The pool has as many threads as the process may use: the least of the CPUs
// of its affinity mask and its cgroup's quota, or HEADRACE_NUM_THREADS. It is
// made at first use; a forked child makes its own. Where the system gives fewer
// threads, those that it gives and the callers do all work. All functions are
// thread-safe.
//
// What a loop's function throws ends the loop early, on whatever thread it was
// thrown; the first such exception comes out of the loop on its caller.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/functional/function_ref.h"

namespace headrace {

// A pool that a user hands in, to be used instead of ours.
class UserThreadPool {
 public:
  virtual ~UserThreadPool() = default;
  // Runs `job` some time, on another thread or (if it must) on this one.
  virtual void Schedule(std::function<void()> job) = 0;
  virtual int NumThreads() const = 0;
};

// Threads that one loop uses at most, the caller included; at least 1.
int NumThreads();
// Sets that number for the process; 0 goes back to the default.
void SetNumThreads(int n);
// What NumThreads() is when nobody has set it.
int DefaultNumThreads();

// Uses `pool` (borrowed) for all later work; nullptr goes back to our own.
// The pool must live until no work that began before is left.
void SetUserThreadPool(UserThreadPool* pool);

// Loops that this thread starts use at most `n` threads while this lives.
class ScopedThreadLimit {
 public:
  explicit ScopedThreadLimit(int n);
  ~ScopedThreadLimit();
  ScopedThreadLimit(const ScopedThreadLimit&) = delete;
  ScopedThreadLimit& operator=(const ScopedThreadLimit&) = delete;

 private:
  const int saved_;
};

// Calls fn(begin, end) for ranges that cover [0, n) once, on several threads
// when that pays: `ns_per_item` is the time one item takes on one thread, a
// guess within a factor of a few. Returns when all are done. Where the ranges
// are cut depends on the number of threads, so use this where items do not
// depend on one another, and ParallelBlocks where they are combined.
void ParallelFor(int64_t n, double ns_per_item,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> fn);

// Calls fn(block, begin, end) once for every block of `block_size` items of
// [0, n) (the last may be shorter), each whole. The cut never depends on the
// number of threads: partial results kept by block and combined in order give
// the same bits everywhere.
void ParallelBlocks(
    int64_t n, int64_t block_size, double ns_per_item,
    absl::FunctionRef<void(int64_t block, int64_t begin, int64_t end)> fn);

// A block size for reductions over n items that depends on n alone: a power of
// two of at least 4096, giving at most 1024 blocks.
int64_t FixedBlockSize(int64_t n);
// The number of blocks of that size.
inline int64_t FixedBlocks(int64_t n) {
  const int64_t size = FixedBlockSize(n);
  return n / size + (n % size != 0);
}

// Calls its argument while the caller has let go of what other threads may wait
// for.
using InlineRunner = void (*)(absl::FunctionRef<void()> job);
// What Schedule runs jobs with on its caller; nullptr: nothing has to be let
// go.
void SetInlineRunner(InlineRunner runner);

// Runs `job` on a worker, in order of arrival; at once, on the caller, where
// the system gives no thread. A job must not wait for another job: all workers
// may be waiting then. What it throws is lost.
void Schedule(std::function<void()> job);

}  // namespace headrace
