#include "simulator/collective.h"

#include <gtest/gtest.h>

#include <numeric>

namespace headrace::simulator {
namespace {

// Links whose only limit is how much goes through.
LinkModel PlainLink() {
  LinkModel link;
  link.rate = 1e8;
  link.delay = link.overhead = 0;
  link.message_work = link.byte_work = link.merge_work = 0;
  return link;
}

CollectiveTimes TimesOf(const LinkModel& link, const CollectiveRun& run) {
  auto times = SimulateCollective(link, run);
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? *times : CollectiveTimes();
}

CollectiveRun RunOf(int members, int64_t bytes,
                    CollectiveKind kind = CollectiveKind::kReduce) {
  CollectiveRun run;
  run.kind = kind;
  run.members = members;
  run.bytes = bytes;
  return run;
}

// What a member sends beside the data: who it is and what it asks for.
constexpr int64_t kHeaders = 100;

TEST(SimulatedCollectiveTest, MembersOfARingSendTwiceTheDataLessAShare) {
  for (const int p : {2, 3, 8, 16}) {
    const int64_t bytes = int64_t{48} << 18;
    const CollectiveTimes times = TimesOf(PlainLink(), RunOf(p, bytes));
    for (const int64_t sent : times.sent) {
      EXPECT_GE(sent, 2 * (p - 1) * bytes / p) << p;
      EXPECT_LE(sent, 2 * (p - 1) * bytes / p + kHeaders) << p;
    }
  }
}

TEST(SimulatedCollectiveTest, ARingOnEqualLinksTakesWhatTheFormulaSays) {
  for (const int p : {2, 4, 10, 64}) {
    const int64_t bytes = int64_t{64} << 20;
    const LinkModel link = PlainLink();
    const double expected = 2.0 * (p - 1) / p * bytes / link.rate;
    const CollectiveTimes times = TimesOf(link, RunOf(p, bytes));
    EXPECT_NEAR(times.seconds / expected, 1, 1e-3) << p;
    EXPECT_GT(times.link, 0.99);
  }
}

// Parts of a chunk overlap with each other, so each of the 2 (P - 1) rounds
// costs a delay only where the next part is not there by then.
TEST(SimulatedCollectiveTest, DelaysAddUpWhereAChunkIsOnePart) {
  LinkModel link = PlainLink();
  link.delay = 0.01;
  constexpr int kMembers = 16;
  // A chunk of 64 KB: one part, so that each round waits for the last.
  const int64_t bytes = int64_t{kMembers} * (64 << 10);
  const double round = (64 << 10) / link.rate + link.delay;
  const CollectiveTimes times = TimesOf(link, RunOf(kMembers, bytes));
  const double expected = 2 * (kMembers - 1) * round + link.delay;
  EXPECT_NEAR(times.seconds / expected, 1, 1e-3);
}

TEST(SimulatedCollectiveTest, ASmallSumIsSwappedAndABroadcastIsHandedOn) {
  LinkModel link = PlainLink();
  link.delay = 0.005;
  // There and back: the lower of two asks.
  EXPECT_NEAR(TimesOf(link, RunOf(8, 1024)).seconds, 2 * link.delay, 1e-3);
  const int64_t bytes = int64_t{64} << 20;
  const CollectiveTimes times =
      TimesOf(link, RunOf(8, bytes, CollectiveKind::kBroadcast));
  // Each of the seven is behind the one before it by a part.
  const double part = (1 << 20) / link.rate + link.delay;
  EXPECT_NEAR(times.seconds, bytes / link.rate + 6 * part + 2 * link.delay,
              1e-3);
  EXPECT_EQ(
      std::accumulate(times.sent.begin(), times.sent.end(), int64_t{0}) / bytes,
      7);
}

TEST(SimulatedCollectiveTest, OtherKindsSendWhatTheyMust) {
  const int64_t bytes = 8 << 20;
  for (const auto kind :
       {CollectiveKind::kReduceScatter, CollectiveKind::kGather}) {
    const CollectiveTimes times = TimesOf(PlainLink(), RunOf(4, bytes, kind));
    const int64_t each =
        kind == CollectiveKind::kGather ? 3 * bytes : 3 * bytes / 4;
    for (const int64_t sent : times.sent) {
      EXPECT_GE(sent, each);
      EXPECT_LE(sent, each + 3 * kHeaders);
    }
  }
}

TEST(SimulatedCollectiveTest, WhoComesLateHoldsAllUp) {
  CollectiveRun run = RunOf(4, 4 << 20);
  const double on_time = TimesOf(PlainLink(), run).seconds;
  run.starts = {0, 0, 3, 0};
  const double late = TimesOf(PlainLink(), run).seconds;
  EXPECT_GT(late, 3);
  EXPECT_LT(late, 3 + 1.2 * on_time);
}

// Processors that all share take turns, and what comes first stays first.
TEST(SimulatedCollectiveTest, OneMachineDoesTheWorkOfAll) {
  LinkModel link = PlainLink();
  link.rate = 1e12;
  link.byte_work = 1e-9;
  CollectiveRun run = RunOf(8, 8 << 20);
  const double work = 14.0 / 8 * (8 << 20) * 1e-9;  // of each
  EXPECT_GE(TimesOf(link, run).seconds, work);
  for (const int processors : {1, 2, 3}) {
    link.processors = processors;
    const double all = 8 * work / processors;
    EXPECT_GT(TimesOf(link, run).seconds, 0.99 * all);
    EXPECT_LT(TimesOf(link, run).seconds, 1.2 * all);
  }
  // Parts of unlike size.
  link.message_work = 1e-4;
  TimesOf(link, RunOf(3, (1 << 20) + 4));
}

TEST(SimulatedCollectiveTest, TheSeedDecidesWhatIsLost) {
  LinkModel link = PlainLink();
  link.loss = 0.02;
  CollectiveRun run = RunOf(8, 32 << 20);
  const double first = TimesOf(link, run).seconds;
  EXPECT_EQ(TimesOf(link, run).seconds, first);
  run.seed = 2;
  EXPECT_NE(TimesOf(link, run).seconds, first);
  link.loss = 0;
  EXPECT_LT(TimesOf(link, run).seconds, first);
}

TEST(SimulatedCollectiveTest, WhatCannotBeIsAnError) {
  for (const CollectiveRun& run :
       {RunOf(1, 64), RunOf(2, 0), RunOf(1 << 20, 64),
        RunOf(2, 64, CollectiveKind::kAllToAll)}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(SimulateCollective(PlainLink(), run).status()));
  }
  CollectiveRun run = RunOf(3, 64);
  run.starts = {0, 0};
  EXPECT_FALSE(SimulateCollective(PlainLink(), run).ok());
}

}  // namespace
}  // namespace headrace::simulator
