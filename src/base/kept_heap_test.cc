#include "base/kept_heap.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "base/test_machine.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(_GLIBCXX_TSAN)

int64_t FaultsOfThisThread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// As many blocks as may be under way at once, filled and freed.
void FillAndFree() {
  constexpr size_t kBlocks = 48, kBlock = 64 << 10;
  std::vector<char*> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(static_cast<char*>(std::malloc(kBlock)));
    ASSERT_NE(blocks.back(), nullptr);
    std::memset(blocks.back(), 1, kBlock);
  }
  for (char* const block : blocks) std::free(block);
}

TEST(KeptHeap, FreedBlocksAreFilledAgainWithoutFaults) {
  if (Emulated()) GTEST_SKIP() << "the emulator's own faults count";
  KeepFreedHeap();
  // Of a thread, whose heap is its own.
  std::thread([] {
    FillAndFree();
    FillAndFree();
    const int64_t before = FaultsOfThisThread();
    constexpr int kRounds = 20;
    for (int i = 0; i < kRounds; ++i) FillAndFree();
    // 768 pages a round where they are given back each time.
    EXPECT_LT(FaultsOfThisThread() - before, 768);
  }).join();
}

#endif

}  // namespace
}  // namespace headrace
