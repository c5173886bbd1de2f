#include "base/allocator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace headrace {
namespace {

Allocator& A() { return *CpuAllocator(); }

TEST(Allocator, BlocksAreAlignedAndDisjoint) {
  std::mt19937 random(1);
  struct Piece {
    char* p;
    size_t bytes;
    char mark;
  };
  std::vector<Piece> pieces;
  for (int i = 0; i < 4000; ++i) {
    if (pieces.size() > 100 || (i % 3 == 2 && !pieces.empty())) {
      const size_t j = random() % pieces.size();
      for (size_t k = 0; k < pieces[j].bytes; k += 61) {
        ASSERT_EQ(pieces[j].p[k], pieces[j].mark);
      }
      A().Deallocate(pieces[j].p, pieces[j].bytes);
      pieces.erase(pieces.begin() + j);
      continue;
    }
    const size_t bytes = random() % (size_t{1} << (random() % 23));
    char* p = static_cast<char*>(A().Allocate(bytes));
    ASSERT_NE(p, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % Allocator::kAlignment, 0);
    std::memset(p, i, bytes);
    pieces.push_back({p, bytes, static_cast<char>(i)});
  }
  for (Piece& x : pieces) A().Deallocate(x.p, x.bytes);
}

// What is there for a tensor of so many MiB and what lies beside its data.
constexpr size_t MiB(size_t count) { return (count << 20) + (8 << 10); }

TEST(Allocator, CountsUseAndPeak) {
  const int64_t before = A().stats().bytes_in_use;
  A().ResetPeak();
  void* p = A().Allocate(MiB(1));
  EXPECT_EQ(A().stats().bytes_in_use, before + MiB(1));
  A().Deallocate(p, MiB(1));
  EXPECT_EQ(A().stats().bytes_in_use, before);
  EXPECT_EQ(A().stats().peak_bytes, before + MiB(1));
  A().Deallocate(nullptr, 100);
  EXPECT_EQ(A().stats().bytes_in_use, before);
}

TEST(Allocator, ReusesAndGivesBack) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "nothing is cached under the address sanitizer";
#endif
  for (size_t bytes : {1 << 10, 1 << 16, 5 << 20}) {
    void* p = A().Allocate(bytes);
    A().Deallocate(p, bytes);
    const int64_t calls = A().stats().system_calls;
    EXPECT_EQ(A().Allocate(bytes), p);
    EXPECT_EQ(A().stats().system_calls, calls);
    A().Deallocate(p, bytes);
  }
  EXPECT_GT(A().stats().bytes_held, A().stats().bytes_in_use);
  A().Trim();
  EXPECT_EQ(A().stats().bytes_held, A().stats().bytes_in_use);
}

TEST(Allocator, IdleMemoryGoesBack) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "nothing is cached under the address sanitizer";
#endif
  std::vector<void*> small(20000), large(4);
  for (void*& p : large) p = A().Allocate(16 << 20);
  for (void*& p : small) p = A().Allocate(4096);
  for (void* p : small) A().Deallocate(p, 4096);
  for (void* p : large) A().Deallocate(p, 16 << 20);
  EXPECT_GT(A().stats().bytes_held, int64_t{64} << 20);
  // Nobody does anything, for two windows of four seconds.
  for (int i = 0; i < 1500 && A().stats().bytes_held > (4 << 20); ++i) {
    usleep(10000);
  }
  EXPECT_LE(A().stats().bytes_held, 4 << 20);  // a thread's own cache
}

TEST(Allocator, LimitIsKept) {
  A().SetLimit(A().stats().bytes_in_use + MiB(3) + MiB(1));
  void* p = A().Allocate(MiB(3));
  EXPECT_NE(p, nullptr);
  EXPECT_EQ(A().Allocate(MiB(2)), nullptr);
  void* q = A().Allocate(MiB(1));
  EXPECT_NE(q, nullptr);
  A().Deallocate(p, MiB(3));
  A().Deallocate(q, MiB(1));
  A().SetLimit(0);
}

TEST(Allocator, ImpossibleSizesFail) {
  EXPECT_EQ(A().Allocate(~size_t{0}), nullptr);
  EXPECT_EQ(A().Allocate(size_t{1} << 60), nullptr);
}

TEST(Allocator, BlocksMayMoveBetweenThreads) {
  const int64_t before = A().stats().bytes_in_use;
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> blocks(3000);
    std::thread maker([&] {
      for (void*& b : blocks) b = A().Allocate(1000);
    });
    maker.join();
    std::thread taker([&] {
      for (void* b : blocks) A().Deallocate(b, 1000);
    });
    taker.join();
  }
  EXPECT_EQ(A().stats().bytes_in_use, before);
}

// As a server's requests do, whose tensors another thread frees.
TEST(Allocator, BlocksComeBackFromAThreadThatOnlyFrees) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "nothing is cached under the address sanitizer";
#endif
  std::vector<void*> blocks(200);
  std::atomic<int> turns{0};  // odd: the other thread's
  constexpr int kTurns = 400;
  const int64_t held = A().stats().bytes_held;
  std::thread taker([&] {
    for (int turn = 1; turn < kTurns; turn += 2) {
      while (turns != turn) std::this_thread::yield();
      for (void* b : blocks) A().Deallocate(b, 64);
      ++turns;
    }
  });
  while (turns < kTurns) {
    for (void*& b : blocks) b = A().Allocate(64);
    const int turn = ++turns;
    while (turns == turn) std::this_thread::yield();
  }
  taker.join();
  EXPECT_LE(A().stats().bytes_held - held, 64 << 10);
}

// As a server's threads do, which take requests in turn and live on.
TEST(Allocator, ThreadsThatOnlyFreeKeepLittleEach) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "nothing is cached under the address sanitizer";
#endif
  constexpr int kThreads = 8, kBlocks = 300, kBytes = 4096;
  std::vector<void*> blocks(kBlocks);
  std::atomic<int> turn{-1};  // whose turn it is; kThreads: the end
  const int64_t held = A().stats().bytes_held;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (turn != t) std::this_thread::yield();
      for (void* b : blocks) A().Deallocate(b, kBytes);
      turn = -1;
      while (turn != kThreads) std::this_thread::yield();
    });
  }
  for (int t = 0; t < kThreads; ++t) {
    for (void*& b : blocks) b = A().Allocate(kBytes);
    turn = t;
    while (turn != -1) std::this_thread::yield();
  }
  const int64_t grown = A().stats().bytes_held - held;
  turn = kThreads;
  for (std::thread& t : threads) t.join();
  // All blocks of a turn, and 128 KiB a thread; 8 MB if each kept 256 blocks.
  EXPECT_LE(grown, kBlocks * kBytes + kThreads * (128 << 10));
}

TEST(Allocator, WorksInAForkedChild) {
  const pid_t child = fork();
  if (child == 0) {
    void* p = A().Allocate(100000);
    std::memset(p, 1, 100000);
    A().Deallocate(p, 100000);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace headrace
