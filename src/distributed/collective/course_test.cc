#include "distributed/collective/course.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <vector>

namespace headrace::distributed {
namespace {

using What = Move::What;
using CourseOf = std::function<Course(int rank)>;

struct Played {
  std::vector<int64_t> given;  // bytes, by rank
  std::vector<std::vector<Move>> taken;
};

// All members move by turns, each until it waits for a part that nobody gave:
// what is taken is what was given, in order, and nothing is left over.
Played Play(int size, const CourseOf& course_of) {
  struct Stream {
    std::deque<Range> parts;
    bool asked = false, closed = false;
  };
  std::map<std::pair<int, int>, Stream> streams;  // from, to
  std::vector<Moves> moves;
  std::vector<std::set<int>> askers(size);
  std::vector<std::optional<Move>> next(size);
  Played played{std::vector<int64_t>(size),
                std::vector<std::vector<Move>>(size)};
  const auto give = [&](int from, int to, const Move& m) {
    Stream& s = streams[{from, to}];
    EXPECT_FALSE(s.closed) << from << " gives " << to << " more";
    s.parts.push_back(m.range);
    s.closed = m.last;
    played.given[from] += m.range.size();
  };
  for (int r = 0; r < size; ++r) {
    Course course = course_of(r);
    askers[r] = course.askers;
    moves.emplace_back(std::move(course));
  }
  const auto step = [&](int r) {
    if (!next[r]) {
      Move m;
      if (!moves[r].Next(&m)) return false;
      next[r] = m;
    }
    const Move m = *next[r];
    if (m.what == What::kAsk || m.what == What::kSwap) {
      EXPECT_TRUE(askers[m.peer].contains(r));
      streams[{m.peer, r}].asked = true;
      if (m.what == What::kSwap) give(r, m.peer, m);
    } else if (m.what == What::kGive) {
      EXPECT_TRUE(askers[r].contains(m.peer));
      give(r, m.peer, m);
    } else {
      Stream& s = streams[{m.peer, r}];
      if (s.parts.empty()) return false;
      EXPECT_EQ(s.parts.front().size(), m.range.size());
      s.parts.pop_front();
      played.taken[r].push_back(m);
      if (m.hands_on >= 0) {
        EXPECT_TRUE(askers[r].contains(m.hands_on));
        give(r, m.hands_on, m);
      }
    }
    next[r].reset();
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < size; ++r) {
      while (step(r)) moved = true;
    }
  }
  for (int r = 0; r < size; ++r) {
    Move m;
    EXPECT_FALSE(next[r] || moves[r].Next(&m)) << "rank " << r << " waits";
  }
  for (const auto& [who, s] : streams) {
    EXPECT_TRUE(s.parts.empty() && s.closed) << who.first << " " << who.second;
  }
  return played;
}

int64_t Sum(const std::vector<int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), int64_t{0});
}

TEST(CourseTest, ARingMovesTwiceTheDataLessAShare) {
  for (const int size : {2, 3, 4, 7, 16}) {
    for (const int64_t count : {int64_t{17}, int64_t{1} << 20}) {
      const int64_t bytes = 4 * count;
      const Played all = Play(size, [&](int rank) {
        return RingCourse(rank, size, count, 4, /*scatters=*/false);
      });
      EXPECT_EQ(Sum(all.given), 2 * (size - 1) * bytes) << size;
      if (count % size == 0) {
        for (const int64_t given : all.given) {
          EXPECT_EQ(given, 2 * (size - 1) * bytes / size);
        }
      }
      const Played scattered = Play(size, [&](int rank) {
        return RingCourse(rank, size, count, 4, /*scatters=*/true);
      });
      EXPECT_EQ(Sum(scattered.given), (size - 1) * bytes);
    }
  }
}

// Each byte is merged size - 1 times in all, finished by one, kept by the rest.
TEST(CourseTest, ARingMergesEachByteWithAll) {
  constexpr int kSize = 5;
  constexpr int64_t kCount = 12345;
  const Played all = Play(kSize, [](int rank) {
    return RingCourse(rank, kSize, kCount, 4, /*scatters=*/false);
  });
  std::map<What, int64_t> bytes;
  for (const auto& moves : all.taken) {
    for (const Move& m : moves) {
      bytes[m.what] += m.range.size();
      EXPECT_EQ(m.range.begin % 4, 0);
      EXPECT_LE(m.range.size(), 1 << 20);
    }
  }
  EXPECT_EQ(bytes[What::kMerge], 4 * kCount * (kSize - 2));
  EXPECT_EQ(bytes[What::kFinish], 4 * kCount);
  EXPECT_EQ(bytes[What::kTake], 4 * kCount * (kSize - 1));
}

TEST(CourseTest, OtherWaysMoveWhatTheyMust) {
  constexpr int kSize = 6;
  constexpr int64_t kBytes = (3 << 20) + 17;
  const auto given = [](const CourseOf& course) {
    return Sum(Play(kSize, course).given);
  };
  EXPECT_EQ(given([](int rank) { return SwapCourse(rank, kSize, 100); }),
            kSize * (kSize - 1) * 100);
  // Also where there is nothing in them.
  EXPECT_EQ(given([](int rank) { return SwapCourse(rank, kSize, 0); }), 0);
  for (const bool gathers : {false, true}) {
    EXPECT_EQ(given([=](int rank) {
                return StreamCourse(rank, kSize, kBytes, gathers);
              }),
              kSize * (kSize - 1) * kBytes);
  }
  for (const int source : {0, 4}) {
    EXPECT_EQ(given([=](int rank) {
                return HandOnCourse(rank, kSize, source, kBytes);
              }),
              (kSize - 1) * kBytes);
  }
}

}  // namespace
}  // namespace headrace::distributed
