#include "base/timeline.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace headrace::timeline {
namespace {

using Kind = Event::Kind;

std::vector<std::string> NamesOf(const std::deque<Event>& events) {
  std::vector<std::string> names;
  for (const Event& e : events) names.push_back(e.name);
  return names;
}

std::vector<std::string> Recorded(int level, void (*body)()) {
  EXPECT_TRUE(Start(level, 0).ok());
  body();
  return NamesOf(Stop()->events);
}

using Names = std::vector<std::string>;

TEST(Timeline, NothingWhileNobodyListens) {
  ASSERT_FALSE(On());
  auto late = std::make_unique<Span>(Kind::kScope, "begun before");
  { const Span span(Kind::kOp, "before"); }
  ASSERT_TRUE(Start(2, 0).ok());
  EXPECT_TRUE(On());
  late.reset();
  auto cut = std::make_unique<Span>(Kind::kScope, "ends behind");
  const Recording recording = *Stop();
  EXPECT_FALSE(On());
  cut.reset();
  EXPECT_TRUE(recording.events.empty());
  EXPECT_TRUE(recording.threads.empty());
  EXPECT_EQ(recording.left_out, 0);
  EXPECT_LE(recording.begin, recording.end);
}

TEST(Timeline, Levels) {
  const auto body = [] {
    for (Kind kind :
         {Kind::kScope, Kind::kCall, Kind::kFunction, Kind::kOp, Kind::kStep}) {
      const std::string name = std::to_string(static_cast<int>(kind));
      const Span span(kind, name);
    }
  };
  EXPECT_EQ(Recorded(0, body), Names());
  EXPECT_EQ(Recorded(1, body), (Names{"0", "1"}));
  EXPECT_EQ(Recorded(2, body), (Names{"0", "1", "2", "3", "4"}));
  EXPECT_EQ(Recorded(9, body), (Names{"0", "1", "2", "3", "4"}));
}

TEST(Timeline, OneAtATime) {
  EXPECT_EQ(Stop().status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(Start(1, 0).ok());
  EXPECT_EQ(Start(2, 0).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Stop().ok());
  EXPECT_EQ(Stop().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(On());
}

TEST(Timeline, EventsBeforeTheDelayAreLeftOut) {
  constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
  ASSERT_TRUE(Start(2, kHour).ok());
  { const Span span(Kind::kScope, "early"); }
  Record({Kind::kScope, 0, "late", "", Now() + kHour, Now() + kHour});
  EXPECT_EQ(NamesOf(Stop()->events), Names{"late"});
}

TEST(Timeline, ThreadsThatListenToThemselves) {
  const OfThisThread outer;
  { const Span span(Kind::kStep, "both"); }
  std::thread([] { const Span span(Kind::kStep, "another's"); }).join();
  {
    const OfThisThread inner;
    { const Span span(Kind::kStep, "inner", "Op"); }
    EXPECT_EQ(NamesOf(inner.events()), Names{"inner"});
    EXPECT_EQ(inner.events()[0].op, "Op");
    EXPECT_LE(inner.events()[0].begin, inner.events()[0].end);
  }
  EXPECT_EQ(NamesOf(outer.events()), (Names{"both", "inner"}));
}

TEST(Timeline, ThreadsThatJoinWhatAnotherListensTo) {
  const OfThisThread outer;
  OfThisThread* const told = OfThisThread::Current();
  EXPECT_EQ(told, &outer);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([told] {
      EXPECT_EQ(OfThisThread::Current(), nullptr);
      {
        const OfThisThread::Joined joined(told);
        for (int i = 0; i < 100; ++i) {
          const Span span(Kind::kStep, "joined");
        }
      }
      const OfThisThread::Joined nothing(nullptr);
      const Span span(Kind::kStep, "alone");
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(NamesOf(outer.events()), Names(200, "joined"));
}

TEST(Timeline, LongNamesAreCutAndFullMemoryIsCounted) {
  ASSERT_TRUE(Start(2, 0).ok());
  RecordSpan(Kind::kScope, std::string(1 << 20, 'a'), {}, Now());
  Record({Kind::kScope, 0, std::string(1 << 20, 'b'), "", Now(), Now()});
  for (int i = 0; i < 3; ++i) {
    Event large{Kind::kScope, 0, "large"};
    large.begin = large.end = Now();
    large.attributes = {{"text", std::string(60 << 20, 'c')}};
    Record(std::move(large));
  }
  const Recording recording = *Stop();
  ASSERT_EQ(recording.events.size(), 4u);  // two of 60 MiB in 128
  EXPECT_EQ(recording.events[0].name.size(), 1024u);
  EXPECT_EQ(recording.events[1].name.size(), 1024u);
  EXPECT_EQ(recording.left_out, 1);
  // The next one has its own room.
  EXPECT_EQ(Recorded(1, [] { const Span span(Kind::kScope, "x"); }),
            Names{"x"});
}

TEST(Timeline, TwoThreadsRecordWhileAThirdStartsAndStops) {
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (const char* name : {"first", "second"}) {
    threads.emplace_back([&done, name] {
      while (!done) {
        const Span outer(Kind::kCall, name);
        const Span inner(Kind::kStep, name, "Op");
      }
    });
  }
  int events = 0, rounds = 0;
  // Each is at least begun; how far the threads come in one nobody knows.
  while (rounds < 100 || events == 0) {
    ++rounds;
    ASSERT_TRUE(Start(2, 0).ok());
    std::this_thread::yield();
    const StatusOr<Recording> recording = Stop();
    ASSERT_TRUE(recording.ok());
    std::map<int, std::string> names;  // a thread's
    for (const Event& e : recording->events) {
      EXPECT_LE(recording->begin, e.begin);
      EXPECT_LE(e.begin, e.end);
      EXPECT_TRUE(recording->threads.contains(e.thread));
      EXPECT_EQ(names.try_emplace(e.thread, e.name).first->second, e.name);
      ++events;
    }
  }
  done = true;
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(On());
}

}  // namespace
}  // namespace headrace::timeline
