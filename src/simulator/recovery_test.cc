#include "simulator/recovery.h"

#include <gtest/gtest.h>

namespace headrace::simulator {
namespace {

RecoveryRun RecoveryOf(int members, bool silent = false) {
  RecoveryRun run;
  run.members = members;
  run.dies = members / 2;
  run.silent = silent;
  return run;
}

RecoveryTimes Recovered(const RecoveryRun& run) {
  auto times = SimulateRecovery(LinkModel(), run);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? *times : RecoveryTimes();
}

TEST(SimulatedRecoveryTest, WhoIsKilledIsMissedAtOnce) {
  for (const int members : {3, 8, 32}) {
    const RecoveryTimes times = Recovered(RecoveryOf(members));
    EXPECT_GT(times.formed, 0);
    EXPECT_LT(times.formed, 1) << members;
    EXPECT_GT(times.noticed, 0);
    EXPECT_LT(times.noticed, 0.1) << members;
    EXPECT_GE(times.agreed, times.noticed);
    EXPECT_LT(times.agreed, 1) << members;
    EXPECT_GT(times.messages, members);
  }
}

// Whoever it is: the first one leads.
TEST(SimulatedRecoveryTest, AnyMemberMayDie) {
  for (int dies = 0; dies < 5; ++dies) {
    RecoveryRun run = RecoveryOf(5);
    run.dies = dies;
    EXPECT_LT(Recovered(run).agreed, 1) << dies;
  }
}

TEST(SimulatedRecoveryTest, WhoSaysNothingIsMissedAfterNineSeconds) {
  const RecoveryTimes times = Recovered(RecoveryOf(8, /*silent=*/true));
  EXPECT_GT(times.noticed, 9);
  EXPECT_LT(times.noticed, 10);
  EXPECT_LT(times.agreed, 13);
}

TEST(SimulatedRecoveryTest, WhoComesAgainIsTakenInAndSentTheState) {
  RecoveryRun run = RecoveryOf(6);
  run.restarts = 5;
  run.state_bytes = int64_t{117} << 20;
  const RecoveryTimes times = Recovered(run);
  EXPECT_GT(times.joined, 0);
  EXPECT_LT(times.joined, 1);
  // A second of bytes, and as many more parts as it is handed on.
  EXPECT_GT(times.state, 1);
  EXPECT_LT(times.state, 1.2);
  run.silent = true;
  run.restarts = 20;
  EXPECT_LT(Recovered(run).joined, 1);
}

TEST(SimulatedRecoveryTest, TheSeedDecidesAllOfIt) {
  RecoveryRun run = RecoveryOf(8);
  const RecoveryTimes once = Recovered(run), again = Recovered(run);
  EXPECT_EQ(once.formed, again.formed);
  EXPECT_EQ(once.agreed, again.agreed);
  EXPECT_EQ(once.messages, again.messages);
  bool differs = false;
  for (run.seed = 2; run.seed < 8; ++run.seed) {
    const RecoveryTimes other = Recovered(run);
    differs = differs || other.formed != once.formed ||
              other.messages != once.messages;
  }
  EXPECT_TRUE(differs);
}

TEST(SimulatedRecoveryTest, WhatCannotBeIsAnError) {
  RecoveryRun alone = RecoveryOf(2), nobody = RecoveryOf(4);
  nobody.dies = 4;
  RecoveryRun back = RecoveryOf(4);
  back.restarts = -1;
  for (const RecoveryRun& run : {alone, nobody, back}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(SimulateRecovery(LinkModel(), run).status()));
  }
}

}  // namespace
}  // namespace headrace::simulator
