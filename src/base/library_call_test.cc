#include "base/library_call.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/test_machine.h"

namespace headrace {
namespace {

// A static object of a library, used by calls of it.
struct Table {
  ~Table() { alive = false; }
  std::atomic<bool> alive{true};
};

// What a child process does that ends while threads call a library without end:
// 0, or 1 where a call met a table that was gone.
int EndWithThreads(bool inside_at_exit) {
  static std::atomic<bool> broken{false};
  static std::atomic<int> inside{0};
  // Behind what is tested; leak checks of a child know nothing of the parent's
  // threads.
  std::atexit([] {
    usleep(20000);  // for a thread that is inside to notice
    _exit(broken ? 1 : 0);
  });
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      for (;;) {
        const LibraryCall call;
        static Table table;  // made by the first call, gone before the library
        ++inside;
        for (int j = 0; j < 1000; ++j) {
          if (!table.alive) broken = true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!table.alive) broken = true;
      }
    }).detach();
  }
  while (inside < 40) std::this_thread::yield();
  if (inside_at_exit) {
    const LibraryCall call, nested;
    std::exit(0);
  }
  std::exit(0);
}

TEST(LibraryCall, NoneIsUnderWayWhenStaticObjectsGo) {
  if (const char* why = NoThreadsAfterFork()) GTEST_SKIP() << why;
  for (const bool inside : {false, true}) {
    for (int i = 0; i < 10; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        EndWithThreads(inside);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
  }
}

TEST(LibraryCall, AForkedChildHasNoneOfTheCallsOfOtherThreads) {
  std::atomic<bool> inside{false}, done{false};
  std::thread other([&] {
    const LibraryCall call;
    inside = true;
    while (!done) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);                       // less than EndLibraryCalls waits
    std::atexit([] { _exit(0); });  // without a leak check, as above
    std::exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  done = true;
  other.join();
}

}  // namespace
}  // namespace headrace
