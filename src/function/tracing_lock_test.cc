#include "function/tracing_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "base/cancellation.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// Holds a lock while it lives.
class Holding {
 public:
  explicit Holding(TracingLock& lock) : lock_(lock) {
    EXPECT_TRUE(lock.Acquire().ok());
  }
  ~Holding() { lock_.Release(); }
  Holding(const Holding&) = delete;

 private:
  TracingLock& lock_;
};

void OnTracingThreads(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back(body, t);
  for (std::thread& t : all) t.join();
}

// Comes back once `count` threads called it.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  void Wait() {
    --missing_;
    while (missing_ > 0) usleep(100);
  }

 private:
  std::atomic<int> missing_;
};

TEST(TracingLock, OneThreadAtATimeAsOftenAsItLikes) {
  TracingLock lock;
  int turns = 0, inside = 0;
  OnTracingThreads(8, [&](int) {
    for (int i = 0; i < 200; ++i) {
      const Holding outer(lock), inner(lock);
      EXPECT_EQ(++inside, 1);
      ++turns;
      --inside;
    }
  });
  EXPECT_EQ(turns, 1600);
}

TEST(TracingLock, WhoeverClosesACircleGoesIn) {
  for (const int n : {2, 3, 8}) {
    std::vector<TracingLock> locks(n);
    Meeting all_hold_one(n);
    std::atomic<int> done{0};
    OnTracingThreads(n, [&](int t) {
      const Holding own(locks[t]);
      all_hold_one.Wait();
      const Holding next(locks[(t + 1) % n]);
      const Holding again(locks[t]);
      ++done;
    });
    EXPECT_EQ(done, n);
    for (TracingLock& lock : locks) {
      EXPECT_TRUE(lock.TryAcquire());
      lock.Release();
    }
  }
}

// Functions that call each other at random, as deep as there are functions.
TEST(TracingLock, NobodyWaitsForEver) {
  std::array<TracingLock, 5> locks;
  OnTracingThreads(8, [&](int t) {
    std::mt19937 random(t);
    const std::function<void(int)> trace = [&](int depth) {
      const Holding held(locks[random() % locks.size()]);
      for (int calls = depth > 0 ? random() % 3 : 0; calls > 0; --calls) {
        trace(depth - 1);
      }
    };
    for (int i = 0; i < 50; ++i) trace(4);
  });
}

TEST(TracingLock, WithoutACircleItWaits) {
  TracingLock first, second;
  std::atomic<bool> had_it{false}, may_go{false}, held{false};
  std::thread holder([&] {
    const Holding in_first(first);
    held = true;
    while (!may_go) usleep(100);
    EXPECT_FALSE(had_it);
  });
  while (!held) usleep(100);
  std::thread waiter([&] {
    const Holding in_second(second);
    EXPECT_FALSE(first.TryAcquire());
    const Holding in_first(first);
    had_it = true;
  });
  usleep(20'000);
  may_go = true;
  holder.join();
  waiter.join();
  EXPECT_TRUE(had_it);
}

TEST(TracingLock, ThoseWhoWaitMayBeStopped) {
  TracingLock lock;
  std::atomic<bool> held{false}, done{false};
  std::thread holder([&] {
    const Holding in_lock(lock);
    held = true;
    while (!done) usleep(100);
  });
  while (!held) usleep(100);
  {
    CancellationToken token;
    token.Cancel();
    const StopScope scope(&token);
    EXPECT_EQ(lock.Acquire().code(), absl::StatusCode::kCancelled);
  }
  done = true;
  holder.join();
  EXPECT_TRUE(lock.TryAcquire());
  lock.Release();
}

TEST(TracingLock, AForkedChildFindsItOpen) {
  TracingLock lock, own;
  std::atomic<bool> held{false}, done{false};
  std::thread holder([&] {
    const Holding in_lock(lock);
    held = true;
    while (!done) usleep(100);
  });
  while (!held) usleep(100);
  const Holding in_own(own);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    // No threads here, which the thread sanitizer refuses in a child.
    const bool is_open = lock.Acquire().ok() && own.TryAcquire();
    own.Release();
    own.Release();
    lock.Release();
    const bool is_open_again = own.TryAcquire() && lock.TryAcquire();
    _exit(is_open && is_open_again ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  done = true;
  holder.join();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace headrace
