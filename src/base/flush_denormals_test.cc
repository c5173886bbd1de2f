#include "base/flush_denormals.h"

#include <atomic>

#include "base/thread_pool.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

float Times(float x, float by) {
  volatile float a = x, b = by;
  return a * b;
}

TEST(FlushDenormals, WhileItLives) {
  EXPECT_FALSE(FlushDenormals::On());
  {
    const FlushDenormals flushed;
    EXPECT_TRUE(FlushDenormals::On());
    EXPECT_EQ(Times(1e-40f, 3), 0);
    EXPECT_EQ(Times(1e-30f, 1e-9f), 0);
    {
      const FlushDenormals again;
      const FlushDenormals plain(false);
      EXPECT_GT(Times(1e-40f, 3), 0);
    }
    EXPECT_TRUE(FlushDenormals::On());
  }
  EXPECT_FALSE(FlushDenormals::On());
  EXPECT_GT(Times(1e-40f, 3), 0);
}

// Loops compute as their callers do, on whatever thread.
TEST(FlushDenormals, WorkersFollowTheirCaller) {
  SetNumThreads(4);
  for (bool flush : {true, false, true}) {
    const FlushDenormals flushed(flush);
    std::atomic<int> others{0};
    ParallelFor(1000, 1e4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        others += FlushDenormals::On() != flush;
        others += (Times(1e-40f, 3) == 0) != flush;
      }
    });
    EXPECT_EQ(others, 0);
  }
  SetNumThreads(0);
}

}  // namespace
}  // namespace headrace
