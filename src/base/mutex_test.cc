#include "base/mutex.h"

#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

namespace headrace {
namespace {

// Whether another thread finds the mutex open.
bool IsOpen(Mutex& mutex) {
  bool open = false;
  std::thread([&] {
    if (!mutex.try_lock()) return;
    open = true;
    mutex.unlock();
  }).join();
  return open;
}

TEST(MutexLock, HoldsWhileItLives) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(IsOpen(mutex));
  }
  EXPECT_TRUE(IsOpen(mutex));
}

TEST(MutexUnlock, TakesTheLockAgainAlsoPastAnException) {
  Mutex mutex;
  MutexLock lock(mutex);
  try {
    MutexUnlock open(mutex);
    EXPECT_TRUE(IsOpen(mutex));
    throw std::runtime_error("while it is open");
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(IsOpen(mutex));
  }
}

TEST(CondVar, AWaitLetsOthersInAndHoldsTheLockAfterIt) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  MutexLock lock(mutex);
  std::thread other([&] {
    MutexLock held(mutex);
    ready = true;
    changed.NotifyAll();
  });
  while (!ready) changed.Wait(mutex);
  EXPECT_FALSE(IsOpen(mutex));
  {
    MutexUnlock open(mutex);
    other.join();
  }
  changed.WaitFor(mutex, std::chrono::milliseconds(1));  // nobody notifies
  EXPECT_FALSE(IsOpen(mutex));
}

}  // namespace
}  // namespace headrace
