#include "base/stack_room.h"

#include <thread>

#include "gtest/gtest.h"

namespace headrace {
namespace {

// Frames of a kilobyte each until there is no room; how many there were.
[[gnu::noinline]] int Deepen(int depth) {
  volatile char room[1024];
  room[0] = static_cast<char>(depth);
  if (!CheckStackRoom("a test").ok()) return depth;
  const int deepest = Deepen(depth + 1);
  return deepest + (room[0] - static_cast<char>(depth));
}

TEST(StackRoom, EndsRecursionOnEveryThread) {
  EXPECT_TRUE(CheckStackRoom("a test").ok());
  EXPECT_GT(Deepen(0), 100);
  std::thread([] { EXPECT_GT(Deepen(0), 100); }).join();
  EXPECT_TRUE(CheckStackRoom("a test").ok());
  EXPECT_EQ(CheckStackRoom("all of it", size_t{1} << 40).code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace headrace
