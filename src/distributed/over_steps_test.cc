#include "distributed/over_steps.h"

#include "gtest/gtest.h"

namespace headrace::distributed {
namespace {

TEST(OverSteps, AreToldOnce) {
  OverSteps over;
  Metadata metadata;
  over.TellIn(&metadata);
  EXPECT_TRUE(metadata.empty());
  EXPECT_TRUE(over.Add(7));
  EXPECT_TRUE(over.Add(INT64_MAX));
  over.TellIn(&metadata);
  EXPECT_EQ(OverStepsIn(metadata), (std::vector<int64_t>{7, INT64_MAX}));
  Metadata none;
  over.TellIn(&none);
  EXPECT_TRUE(none.empty());
}

TEST(OverSteps, AreToldAtOnceWhereManyWait) {
  OverSteps over;
  int64_t kept = 0;
  while (kept < 1000 && over.Add(kept)) ++kept;
  EXPECT_LT(kept, 1000);
  Metadata metadata;
  over.TellIn(&metadata);
  EXPECT_EQ(OverStepsIn(metadata).size(), static_cast<size_t>(kept));
  EXPECT_TRUE(over.Add(1));
}

TEST(OverSteps, WhatIsNoNumberIsPassedOver) {
  Metadata metadata;
  metadata.emplace("headrace-over", "1,,x,99999999999999999999999,-2,3 4");
  EXPECT_EQ(OverStepsIn(metadata), (std::vector<int64_t>{1, -2}));
  std::string many;
  for (int i = 0; i < 100000; ++i) many += "1,";
  Metadata long_one;
  long_one.emplace("headrace-over", many);
  EXPECT_LE(OverStepsIn(long_one).size(), 64u);
}

}  // namespace
}  // namespace headrace::distributed
