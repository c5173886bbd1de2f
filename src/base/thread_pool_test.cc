#include "base/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/cancellation.h"
#include "base/cpu_count.h"
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
#if _GLIBCXX_TSAN
  GTEST_SKIP() << "the thread sanitizer forbids threads after a fork";
#endif
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
    job();
  }
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

TEST(CpuCount, IsSane) {
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), 100000);
}

TEST(Cancellation, FlagParentAndDeadline) {
  CancellationToken parent;
  CancellationToken child(&parent);
  EXPECT_FALSE(child.cancelled());
  EXPECT_TRUE(child.status().ok());
  parent.Cancel();
  EXPECT_TRUE(child.cancelled());
  EXPECT_EQ(child.status().code(), absl::StatusCode::kCancelled);
  CancellationToken late(CancellationToken::Clock::now());
  EXPECT_TRUE(late.cancelled());
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Cancellation, Callbacks) {
  CancellationToken token;
  int a = 0, b = 0;
  const auto ida = token.AddCallback([&] { ++a; });
  token.AddCallback([&] { ++b; });
  EXPECT_TRUE(token.RemoveCallback(ida));
  token.Cancel();
  token.Cancel();
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 1);
  EXPECT_EQ(token.AddCallback([] {}), CancellationToken::kAlreadyCancelled);
  EXPECT_FALSE(token.RemoveCallback(ida));
}

}  // namespace
}  // namespace headrace
