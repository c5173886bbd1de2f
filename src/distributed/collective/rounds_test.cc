#include "distributed/collective/rounds.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

TEST(Rounds, AreToldApart) {
  Rounds rounds;
  std::set<int64_t> odd;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const int64_t instance = random() % 50;
    const bool was_odd = odd.erase(instance) > 0;
    EXPECT_EQ(rounds.Next(instance), was_odd);
    if (!was_odd) odd.insert(instance);
  }
}

TEST(Rounds, ManyThatAreCalledOnceAreOneRange) {
  Rounds rounds;
  for (int64_t i = 0; i < 100'000; ++i) EXPECT_FALSE(rounds.Next(i));
  EXPECT_EQ(rounds.num_ranges(), 1u);
  EXPECT_TRUE(rounds.Next(500));
  EXPECT_EQ(rounds.num_ranges(), 2u);
  EXPECT_FALSE(rounds.Next(500));
  EXPECT_EQ(rounds.num_ranges(), 1u);
  for (int64_t i = 200'000; i > 100'000; --i) EXPECT_FALSE(rounds.Next(i));
  EXPECT_EQ(rounds.num_ranges(), 2u);
}

}  // namespace
}  // namespace headrace::distributed
