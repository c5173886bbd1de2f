// The ways in which members bring a collective about.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "distributed/collective/turn.h"

namespace headrace::distributed {

// One member in one collective: what it knows, and how it meets the others.
struct Meeting {
  const CollectiveCall& call;
  int rank = 0, size = 0;
  // The member's turn in a step, for which those ranks will ask.
  std::function<StatusOr<std::shared_ptr<Turn>>(int step, std::set<int> askers)>
      begin;
  std::function<Channel&(int rank)> channel;
};

// The bytes that go at once to all others together: two processes on loopback
// take as long for a sum either way (benchmarks/collective.py).
inline constexpr size_t kSwapped = 256 << 10;

// Whether a member's bytes are swapped as one part with each other; more go
// round or in streams. Never by time, so that all choose alike and sums have
// the same order in every run.
bool GoesAtOnce(size_t bytes, int size);

// What the collective gives this member.
StatusOr<Tensor> GoTogether(const Meeting& meeting);

}  // namespace headrace::distributed
