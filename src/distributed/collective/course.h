// What a member does in a collective, move by move. Ranks and sizes alone
// decide it, never time, so that all choose alike and sums have the same order
// in every run. ways.cc does it with tensors, the simulator with their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>

#include "distributed/group/parts.h"

namespace headrace::distributed {

// A move of a member's own thread in its turn.
struct Move {
  enum class What {
    kAsk,     // asks the peer for its parts
    kSwap,    // gives the peer the part, and asks for its own
    kGive,    // gives the peer the part
    kTake,    // waits for the peer's next part, and keeps it
    kMerge,   // the same, merged with the member's own
    kFinish,  // the same, where nothing is missing from what comes of it
  };
  What what = What::kAsk;
  int peer = 0;
  Range range;        // the part, of the tensor's bytes
  Range chunk;        // what is cut into such parts
  int hands_on = -1;  // who is given what came of it; -1: nobody
  bool last = false;  // there are no more for whom it is given to
};

// All moves of a member in a turn.
struct Course {
  std::set<int> askers;  // the ranks that will ask for what it gives
  // What is done in turn, `length` times; each is one move, or as many as its
  // range is cut into.
  std::function<Move(int64_t i)> stretch;
  int64_t length = 0;
  int64_t element = 1;  // bytes; parts are of whole ones
  bool cut = true;
};

class Moves {
 public:
  explicit Moves(Course course) : course_(std::move(course)) {}
  // False at the end.
  bool Next(Move* move);

 private:
  const Course course_;
  int64_t next_ = 0, at_ = 0, part_ = 0;
  Move stretch_;
};

// The bytes that go at once to all others together: two processes on loopback
// take as long for a sum either way (benchmarks/collective.py).
inline constexpr size_t kSwapped = 256 << 10;

// gRPC sends messages of a megabyte fastest.
inline constexpr int64_t kLongestPart = 1 << 20;

// Whether a member's bytes are swapped as one part with each other; more go
// round or in streams.
bool GoesAtOnce(size_t bytes, int size);

// Each swaps all its bytes with each other: the lower rank asks.
Course SwapCourse(int rank, int size, int64_t bytes);
// Sums round a ring, a chunk a member: each is begun by the one behind its own
// and handed on, so that the order is that of ranks, and one member computes
// what all get. `scatters`: each keeps its own chunk alone.
Course RingCourse(int rank, int size, int64_t count, int64_t element,
                  bool scatters);
// Each sends each other one `bytes` of its own: the same, where it `gathers`.
Course StreamCourse(int rank, int size, int64_t bytes, bool gathers);
// From `source` on, each hands on to the next what it gets.
Course HandOnCourse(int rank, int size, int source, int64_t bytes);

}  // namespace headrace::distributed
