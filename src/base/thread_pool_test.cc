#include "base/thread_pool.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/cpu_count.h"
#include "base/guard.h"
#include "base/test_machine.h"
#include "base/threads.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// Sets the thread count for one test.
struct Threads {
  explicit Threads(int n) { SetNumThreads(n); }
  ~Threads() { SetNumThreads(0); }
};

void ExpectCoveredOnce(int64_t n, double cost) {
  std::vector<std::atomic<int>> seen(n);
  ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[i];
  });
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], 1) << i << " of " << n;
}

TEST(ThreadPool, CoversEveryItemOnce) {
  for (int threads : {1, 2, 5}) {
    Threads scope(threads);
    for (int64_t n : {0, 1, 2, 7, 1000, 12345}) {
      for (double cost : {0.1, 100., 1e6}) ExpectCoveredOnce(n, cost);
    }
  }
}

TEST(ThreadPool, BlocksDoNotDependOnThreads) {
  for (int threads : {1, 3}) {
    Threads scope(threads);
    std::atomic<int> blocks{0};
    ParallelBlocks(100, 32, 1e5, [&](int64_t b, int64_t begin, int64_t end) {
      EXPECT_EQ(begin, b * 32);
      EXPECT_EQ(end, b == 3 ? 100 : b * 32 + 32);
      ++blocks;
    });
    EXPECT_EQ(blocks, 4);
  }
  EXPECT_EQ(FixedBlockSize(1), 4096);
  EXPECT_EQ(FixedBlocks(int64_t{1} << 40), 1024);
  EXPECT_EQ(FixedBlocks(0), 0);
}

TEST(ThreadPool, NestedLoopsFinish) {
  Threads scope(3);
  std::atomic<int64_t> sum{0};
  ParallelFor(8, 1e6, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      ParallelFor(8, 1e6, [&](int64_t b2, int64_t e2) {
        ParallelFor(4, 1e6, [&](int64_t b3, int64_t e3) {
          sum += (e2 - b2) * (e3 - b3);
        });
      });
    }
  });
  EXPECT_EQ(sum, 8 * 8 * 4);
}

TEST(ThreadPool, ManyCallersAtOnce) {
  Threads scope(2);
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([] {
      for (int i = 0; i < 300; ++i) ExpectCoveredOnce(50, 2000);
    });
  }
  for (auto& c : callers) c.join();
}

TEST(ThreadPool, ReallyUsesSeveralThreads) {
  Threads scope(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  ParallelFor(2, 1e9, [&](int64_t, int64_t) {
    ++inside;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!met && std::chrono::steady_clock::now() < end) {
      if (inside == 2) met = true;
    }
  });
  EXPECT_TRUE(met);
}

TEST(ThreadPool, LimitKeepsLoopsOnTheCaller) {
  Threads scope(4);
  ScopedThreadLimit limit(1);
  EXPECT_EQ(NumThreads(), 1);
  const auto me = std::this_thread::get_id();
  ParallelFor(100, 1e6, [&](int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), me);
  });
}

void WaitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 5000 && !condition(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(condition());
}

TEST(ThreadPool, SchedulesJobsAfterSleepAndResize) {
  for (int threads : {1, 6, 2, 1}) {
    Threads scope(threads);
    std::atomic<int> ran{0};
    for (int i = 0; i < 20; ++i) Schedule([&] { ++ran; });
    WaitUntil([&] { return ran == 20; });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Schedule([&] { ++ran; });
    WaitUntil([&] { return ran == 21; });
  }
}

TEST(ThreadPool, ChildOfForkHasItsOwn) {
  if (const char* why = NoThreadsAfterFork()) GTEST_SKIP() << why;
  Threads scope(2);
  ExpectCoveredOnce(100, 1e6);
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> items{0}, jobs{0};
    ParallelFor(100, 1e6, [&](int64_t b, int64_t e) { items += e - b; });
    Schedule([&] { ++jobs; });
    for (int i = 0; i < 3000 && jobs == 0; ++i) usleep(1000);
    _exit(items == 100 && jobs == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

class InlinePool : public UserThreadPool {
 public:
  void Schedule(std::function<void()> job) override {
    ++jobs;
    if (throws) throw std::runtime_error("no room for jobs");
    job();
  }
  bool throws = false;
  int NumThreads() const override { return 3; }
  int jobs = 0;
};

TEST(ThreadPool, UserPoolIsUsed) {
  InlinePool pool;
  SetUserThreadPool(&pool);
  EXPECT_EQ(NumThreads(), 3);
  ExpectCoveredOnce(1000, 1e5);
  Schedule([] {});
  SetUserThreadPool(nullptr);
  EXPECT_EQ(pool.jobs, 3);
}

class FullPool : public UserThreadPool {
 public:
  void Schedule(std::function<void()>) override { throw std::bad_alloc(); }
  int NumThreads() const override { return 3; }
};

// Destructors do so.
TEST(Schedule, RunsWhatAUsersPoolDoesNotTake) {
  FullPool pool;
  SetUserThreadPool(&pool);
  int ran = 0;
  Schedule([&] { ++ran; });
  SetUserThreadPool(nullptr);
  EXPECT_EQ(ran, 1);
}

// Runs each job on a thread of its own.
class ManyThreads : public UserThreadPool {
 public:
  ~ManyThreads() override {
    for (std::thread& t : threads_) t.join();
  }
  void Schedule(std::function<void()> job) override {
    threads_.emplace_back(std::move(job));
  }
  int NumThreads() const override { return 4; }

 private:
  std::vector<std::thread> threads_;
};

// Of 1000 items the one numbered `bad` throws: it must come out here, and the
// pool must go on working.
void ExpectThrown(int64_t bad) {
  std::atomic<int> begun{0}, running{0};
  try {
    ParallelBlocks(1000, 1, 1e6, [&](int64_t i, int64_t, int64_t) {
      ++begun;
      ++running;
      if (i == bad) {
        --running;
        throw std::runtime_error("item " + std::to_string(i));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      --running;
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_EQ(e.what(), "item " + std::to_string(bad));
  }
  EXPECT_EQ(running, 0);  // nobody is inside any more
  if (bad == 0) {
    EXPECT_LT(begun, 1000);
  }
  ExpectCoveredOnce(1000, 1e5);
}

TEST(ThreadPool, WhatALoopThrowsComesOutOnItsCaller) {
  for (int threads : {1, 2, 5}) {
    Threads scope(threads);
    for (int64_t bad : {0, 1, 500, 999}) ExpectThrown(bad);
  }
  InlinePool in_line;
  SetUserThreadPool(&in_line);
  for (int64_t bad : {0, 500, 999}) ExpectThrown(bad);
  in_line.throws = true;  // its own error is no reason not to finish
  ExpectCoveredOnce(1000, 1e5);
  {
    ManyThreads many;
    SetUserThreadPool(&many);
    for (int64_t bad : {0, 500, 999}) ExpectThrown(bad);
    SetUserThreadPool(nullptr);
  }
}

TEST(ThreadPool, AllChunksMayThrow) {
  Threads scope(4);
  for (int i = 0; i < 200; ++i) {
    EXPECT_THROW(
        ParallelFor(64, 1e6, [](int64_t, int64_t) { throw std::bad_alloc(); }),
        std::bad_alloc);
  }
  // Through a loop inside a loop.
  EXPECT_THROW(ParallelFor(8, 1e6,
                           [](int64_t, int64_t) {
                             ParallelFor(8, 1e6, [](int64_t b, int64_t) {
                               if (b > 2) throw std::bad_alloc();
                             });
                           }),
               std::bad_alloc);
}

TEST(ThreadPool, JobsMayThrow) {
  Threads scope(2);
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    Schedule([&] {
      ++ran;
      throw std::runtime_error("lost");
    });
  }
  WaitUntil([&] { return ran == 20; });
  Schedule([&] { ++ran; });
  WaitUntil([&] { return ran == 21; });
}

// In a child that can have no thread more: everything runs on the caller, and
// on threads again once there are some.
int WorkWithoutThreads() {
  const uid_t nobody = 65534;  // the limit does not hold for root
  if (geteuid() == 0 && setresuid(nobody, nobody, nobody) != 0) return 9;
  rlimit old;
  getrlimit(RLIMIT_NPROC, &old);
  const rlimit none{0, old.rlim_max};
  setrlimit(RLIMIT_NPROC, &none);
  if (StartThread([] {}).ok()) return 1;
  std::atomic<int64_t> items{0};
  int jobs = 0;
  ParallelFor(100, 1e6, [&](int64_t b, int64_t e) { items += e - b; });
  SetInlineRunner([](absl::FunctionRef<void()> job) {
    job();
    job();
  });
  Schedule([&] { ++jobs; });
  if (items != 100 || jobs != 2) return 2;
  setrlimit(RLIMIT_NPROC, &old);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  std::atomic<bool> elsewhere{false};
  const auto me = std::this_thread::get_id();
  Schedule([&] { elsewhere = std::this_thread::get_id() != me; });
  for (int i = 0; i < 3000 && !elsewhere; ++i) usleep(1000);
  return elsewhere ? 0 : 3;
}

TEST(ThreadPool, WorksWhereNoThreadCanBeMade) {
  if (const char* why = NoThreadsAfterFork()) GTEST_SKIP() << why;
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer needs room of its own";
#endif
  Threads scope(3);
  const pid_t child = fork();
  if (child == 0) _exit(WorkWithoutThreads());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "step " << WEXITSTATUS(status);
}

TEST(Guard, MakesStatusesOfExceptions) {
  using absl::StatusCode;
  const auto of = [](auto thrown) {
    return Guarded("a test", [&]() -> Status { throw thrown; });
  };
  EXPECT_EQ(of(std::bad_alloc()), ResourceExhausted("out of memory in a test"));
  EXPECT_EQ(of(std::length_error("x")).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(of(std::out_of_range("place 7")), Internal("a test: place 7"));
  EXPECT_EQ(of(7).code(), StatusCode::kInternal);
  const auto again =
      std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EQ(of(std::system_error(again)).code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Guarded("a test", [] { return NotFound("kept"); }),
            NotFound("kept"));
}

TEST(CpuCount, IsSane) {
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), 100000);
}

TEST(Cancellation, FlagAndDeadline) {
  CancellationToken token;
  EXPECT_FALSE(token.cancelled());
  EXPECT_TRUE(token.status().ok());
  token.Cancel();
  EXPECT_TRUE(token.cancelled());
  EXPECT_EQ(token.status().code(), absl::StatusCode::kCancelled);
  CancellationToken late(CancellationToken::Clock::now());
  EXPECT_TRUE(late.cancelled());
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(StopScope, ScopesNestAndEnd) {
  CancellationToken outer, inner;
  EXPECT_TRUE(CheckStop().ok());
  {
    const StopScope a(&outer);
    const StopScope none(nullptr);
    {
      const StopScope b(&inner);
      inner.Cancel();
      EXPECT_EQ(CheckStop().code(), absl::StatusCode::kCancelled);
    }
    EXPECT_TRUE(CheckStop().ok());
    outer.Cancel();
    EXPECT_TRUE(StopRequested());
  }
  EXPECT_TRUE(CheckStop().ok());
  const Deadline passed(0);
  EXPECT_EQ(CheckStop().code(), absl::StatusCode::kDeadlineExceeded);
}

// A loop in a kernel leaves its remaining chunks; one outside runs to its end.
TEST(StopScope, LoopsEndEarly) {
  for (const int threads : {1, 3}) {
    SetNumThreads(threads);
    for (const bool stoppable : {true, false}) {
      CancellationToken token;
      const StopScope scope(&token);
      std::atomic<int> items{0}, helpers_that_saw{0};
      const auto body = [&](int64_t begin, int64_t end) {
        if (items.fetch_add(static_cast<int>(end - begin)) > 50) token.Cancel();
        helpers_that_saw += token.cancelled() && StopRequested();
      };
      if (stoppable) {
        const Stoppable here;
        EXPECT_THROW(ParallelFor(100000, 1e6, body), Stopped);
        EXPECT_LT(items, 100000);
        const StopHold whole;
        items = 0;
        ParallelFor(1000, 1e6, body);
        EXPECT_EQ(items, 1000);
      } else {
        ParallelFor(1000, 1e6, body);
        EXPECT_EQ(items, 1000);
      }
    }
  }
  SetNumThreads(0);
}

TEST(StopScope, ShortTurnsLookNowAndThen) {
  CancellationToken token;
  const StopScope scope(&token);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(CheckStopOften().ok());
  token.Cancel();
  int turns = 0;
  while (CheckStopOften().ok() && turns < 1000) ++turns;
  EXPECT_LE(turns, 64);
  EXPECT_EQ(CheckStop().code(), absl::StatusCode::kCancelled);
  const StopScope inner(&token);
  EXPECT_FALSE(CheckStopOften().ok());  // at once
}

std::atomic<int> polls{0};
TEST(StopScope, SignalsAreForTheMainThread) {
  polls = 0;
  SetSignalPoll([] { return ++polls == 2; });
  const auto ask = [] {
    for (int i = 0; i < 10 && CheckStop().ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    return CheckStop().code();
  };
  EXPECT_EQ(ask(), absl::StatusCode::kCancelled);
  EXPECT_EQ(polls, 2);
  absl::StatusCode other;
  std::thread([&] { other = CheckStop().code(); }).join();
  EXPECT_EQ(other, absl::StatusCode::kOk);
  const StopSources sources = StopSources::OfThisThread();
  std::thread([&] {
    const AdoptedStops adopted(sources);
    other = CheckStop().code();
  }).join();
  EXPECT_EQ(other, absl::StatusCode::kCancelled);
  ClearInterrupt();
  EXPECT_TRUE(CheckStop().ok());
  SetSignalPoll(nullptr);
}

}  // namespace
}  // namespace headrace
