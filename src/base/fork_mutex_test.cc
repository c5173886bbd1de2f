#include "base/fork_mutex.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "gtest/gtest.h"

namespace headrace {
namespace {

// What `child` gives in a fork; -1 where it does not end in time.
int InChild(const std::function<int()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(child());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkMutex, AChildFindsItOpen) {
  ForkMutex mutex;
  std::atomic<bool> held{false}, done{false};
  std::thread holder([&] {
    MutexLock lock(mutex);
    held = true;
    while (!done) usleep(1000);
  });
  while (!held) usleep(1000);
  EXPECT_EQ(InChild([&] {
              for (int i = 0; i < 3; ++i) MutexLock lock(mutex);
              return 0;
            }),
            0);
  done = true;
  holder.join();
  MutexLock lock(mutex);
}

TEST(ProcessMutex, AForkWaitsForIt) {
  static auto* const mutex = new ProcessMutex;
  static int a = 0, b = 0;
  std::atomic<bool> done{false};
  std::thread holder([&] {
    while (!done) {
      {
        MutexLock lock(*mutex);
        ++a;
        usleep(200);
        ++b;
      }
      usleep(200);
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(InChild([] {
                MutexLock lock(*mutex);
                return a == b ? 0 : 1;
              }),
              0);
  }
  done = true;
  holder.join();
}

TEST(ProcessMutex, AForkByItsHolderGoesOn) {
  static auto* const mutex = new ProcessMutex;
  MutexLock lock(*mutex);
  EXPECT_EQ(InChild([] { return 0; }), 0);
}

}  // namespace
}  // namespace headrace
