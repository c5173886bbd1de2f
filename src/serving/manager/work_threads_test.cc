#include "serving/manager/work_threads.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sys/resource.h>
#endif

#include <atomic>
#include <string>

#include "base/thread_pool.h"

namespace headrace::serving {
namespace {

TEST(ModelWorkThreads, RunJobsInTheOrderInWhichTheyAreDue) {
  auto threads = WorkThreads::Start(1, Priority::kNormal);
  ASSERT_TRUE(threads.ok());
  std::atomic<bool> begun{false}, go{false}, done{false};
  std::string order;
  (*threads)->Add([&] {
    begun = true;
    while (!go) std::this_thread::yield();
  });
  while (!begun) std::this_thread::yield();
  const auto now = Clock::now();
  const auto after = [&](int ms) {
    return now + std::chrono::milliseconds(ms);
  };
  (*threads)->Add([&] { done = true; }, after(30));
  (*threads)->Add([&] { order += 'c'; }, after(20));
  (*threads)->Add([&] { order += 'a'; });
  (*threads)->Add([&] { order += 'b'; });
  go = true;
  while (!done) std::this_thread::yield();
  EXPECT_EQ(order, "abc");
}

TEST(ModelWorkThreads, StopGivesBackWhatWasNotBegun) {
  auto threads = WorkThreads::Start(2, Priority::kNormal);
  ASSERT_TRUE(threads.ok());
  (*threads)->Add([] {}, Clock::time_point::max());
  (*threads)->Add([] {}, Clock::now() + std::chrono::hours(1));
  const auto left = (*threads)->Stop();
  EXPECT_EQ(left.size(), 2u);
  (*threads)->Add([] { FAIL(); });
  EXPECT_TRUE((*threads)->Stop().empty());
}

TEST(ModelWorkThreads, TheLowestPriorityIsThatOfTheThreadAlone) {
  auto threads = WorkThreads::Start(1, Priority::kLowest);
  ASSERT_TRUE(threads.ok());
  std::atomic<bool> done{false};
  std::atomic<int> loop_threads{0}, nice_of_job{0};
  (*threads)->Add([&] {
    loop_threads = NumThreads();
#ifdef __linux__
    nice_of_job = getpriority(PRIO_PROCESS, 0);
#endif
    done = true;
  });
  while (!done) std::this_thread::yield();
  EXPECT_EQ(loop_threads, 1);
#ifdef __linux__
  EXPECT_EQ(nice_of_job, 19);
  EXPECT_LT(getpriority(PRIO_PROCESS, 0), 19);
#endif
}

}  // namespace
}  // namespace headrace::serving
