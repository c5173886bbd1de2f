#include "distributed/collective/course.h"

#include <algorithm>

namespace headrace::distributed {
namespace {

using What = Move::What;

// A stream is cut into some parts, so that parts are worked on while others are
// on their way.
constexpr int64_t kShortestPart = 64 << 10, kPartsAChunk = 4;

int64_t PartOf(Range range, int64_t element) {
  const int64_t part =
      std::clamp(range.size() / kPartsAChunk, kShortestPart, kLongestPart);
  return std::max<int64_t>(part / element, 1) * element;
}

Move MoveOf(What what, int peer, Range range, int hands_on = -1,
            bool last = false) {
  return {what, peer, range, range, hands_on, last};
}

}  // namespace

bool Moves::Next(Move* move) {
  while (next_ < course_.length) {
    if (part_ == 0) {
      stretch_ = course_.stretch(next_);
      at_ = stretch_.range.begin;
      part_ = PartOf(stretch_.range, course_.element);
      if (stretch_.what == What::kAsk || !course_.cut) {
        *move = stretch_;
        at_ = stretch_.range.end;
        return true;
      }
    }
    if (at_ < stretch_.range.end) {
      *move = stretch_;
      const int64_t end = std::min(at_ + part_, stretch_.range.end);
      move->range = {at_, end};
      move->last = stretch_.last && end == stretch_.range.end;
      at_ = end;
      return true;
    }
    ++next_;
    part_ = 0;
  }
  return false;
}

bool GoesAtOnce(size_t bytes, int size) {
  return bytes * static_cast<size_t>(size - 1) <= kSwapped;
}

Course SwapCourse(int rank, int size, int64_t bytes) {
  Course course;
  for (int q = 0; q < rank; ++q) course.askers.insert(q);
  course.cut = false;
  course.length = 2 * (int64_t{size} - 1);
  course.stretch = [rank, size, bytes](int64_t i) {
    const bool begins = i < size - 1;
    int q = static_cast<int>(begins ? i : i - (size - 1));
    if (q >= rank) ++q;
    const What what = !begins    ? What::kTake
                      : q < rank ? What::kGive
                                 : What::kSwap;
    return MoveOf(what, q, {0, bytes}, -1, begins);
  };
  return course;
}

Course RingCourse(int rank, int size, int64_t count, int64_t element,
                  bool scatters) {
  Course course;
  const int right = (rank + 1) % size;
  const int left = static_cast<int>(Mod(rank - 1, size));
  const auto chunk = [size, count, element](int64_t of) {
    const int64_t c = Mod(of, size);
    return Range{count * c / size * element, count * (c + 1) / size * element};
  };
  course.askers = {right};
  course.element = element;
  course.length = 2 + (size - 1) * (scatters ? 1 : 2);
  course.stretch = [=](int64_t i) {
    if (i == 0) return MoveOf(What::kAsk, left, {});
    if (i == 1) {
      return MoveOf(What::kGive, right, chunk(rank - 1), -1,
                    scatters && size == 2);
    }
    const int64_t step = (i - 2) % (size - 1);
    const bool merges = i - 2 == step, done = step == size - 2;
    if (!merges) {
      return MoveOf(What::kTake, left, chunk(rank - step - 1),
                    done ? -1 : right, step == size - 3);
    }
    // With two members what follows is what the other collects.
    const bool last = scatters ? step == size - 3 : size == 2;
    return MoveOf(done ? What::kFinish : What::kMerge, left,
                  chunk(rank - step - 2), scatters && done ? -1 : right, last);
  };
  return course;
}

Course StreamCourse(int rank, int size, int64_t bytes, bool gathers) {
  Course course;
  for (int q = 0; q < size; ++q) {
    if (q != rank) course.askers.insert(q);
  }
  course.length = 3 * (int64_t{size} - 1);
  course.stretch = [=](int64_t i) {
    const int64_t others = size - 1;
    const int64_t step = i < 2 * others ? i / 2 : i - 2 * others;
    const int q = static_cast<int>((rank + 1 + step) % size);
    if (i >= 2 * others) {
      return MoveOf(What::kTake, q, {bytes * q, bytes * (q + 1)});
    }
    if (i % 2 == 0) return MoveOf(What::kAsk, q, {});
    const int64_t at = bytes * (gathers ? rank : q);
    return MoveOf(What::kGive, q, {at, at + bytes}, -1, true);
  };
  return course;
}

Course HandOnCourse(int rank, int size, int source, int64_t bytes) {
  Course course;
  const int place = static_cast<int>(Mod(rank - source, size));
  const int next = (rank + 1) % size;
  const int before = static_cast<int>(Mod(rank - 1, size));
  const bool gives = place < size - 1;
  if (gives) course.askers = {next};
  course.length = place == 0 ? 1 : 2;
  course.stretch = [=](int64_t i) {
    const Range whole{0, bytes};
    if (place == 0) return MoveOf(What::kGive, next, whole, -1, true);
    if (i == 0) return MoveOf(What::kAsk, before, {});
    return MoveOf(What::kTake, before, whole, gives ? next : -1, gives);
  };
  return course;
}

}  // namespace headrace::distributed
