#include "base/threads.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace headrace {
namespace {

std::atomic<int> ended{0};
struct Counted {
  ~Counted() { ++ended; }
  int number = 7;
};
// Uses the thread's own objects while they end.
struct Late {
  ~Late() { last = OwnObject<Counted>().number; }
  static inline std::atomic<int> last{0};
};

TEST(Threads, ObjectsOfAThreadEndWithIt) {
  ended = 0;
  Counted* mine = &OwnObject<Counted>();
  std::thread([mine] {
    Counted& other = OwnObject<Counted>();
    EXPECT_NE(&other, mine);
    EXPECT_EQ(&other, &OwnObject<Counted>());
    EXPECT_EQ(&other, OwnObjectOrNull<Counted>());
    other.number = 8;
    EXPECT_EQ(mine->number, 7);
  }).join();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(&OwnObject<Counted>(), mine);
}

TEST(Threads, WhatIsMadeAgainWhileAThreadEndsEndsToo) {
  ended = 0;
  std::thread([] {
    OwnObject<Late>();
    OwnObject<Counted>().number = 9;  // ends first
  }).join();
  EXPECT_EQ(Late::last, 7);
  EXPECT_EQ(ended, 2);
}

TEST(Threads, BeginPrepared) {
  std::atomic<bool> first{true};
  std::thread([&] { first = threads::prepared >= kForCpp; }).join();
  EXPECT_FALSE(first);  // by others
  std::atomic<bool> ours{false};
  auto thread = StartThread([&] { ours = threads::prepared >= kForCpp; });
  ASSERT_TRUE(thread.ok()) << thread.status();
  thread->join();
  EXPECT_TRUE(ours);
}

}  // namespace
}  // namespace headrace
