// One collective of a simulated group: the product's own courses (who gives
// what to whom, in which parts) and turns (what is asked for, sent, held up),
// on sizes in the place of tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/collective/collective.h"
#include "simulator/links.h"

namespace headrace::simulator {

struct CollectiveRun {
  // kReduce, kReduceScatter, kGather or kBroadcast, whose source is rank 0.
  CollectiveKind kind = CollectiveKind::kReduce;
  int members = 2;
  // Of each member's tensor, of floats; a gather's result is `members` times
  // it.
  int64_t bytes = 0;
  // When each member makes its call, in seconds; empty: all at once.
  std::vector<double> starts;
  uint64_t seed = 1;
};

struct CollectiveTimes {
  double seconds = 0;             // until the last member has its result
  std::vector<double> done;       // when each has
  std::vector<int64_t> sent;      // bytes, by rank
  std::vector<int64_t> messages;  // that came, by rank
  double link = 0;                // the busiest link's share of the time
  double work = 0;                // seconds of all members' processors together
};

// InvalidArgument for a run that cannot be.
StatusOr<CollectiveTimes> SimulateCollective(const LinkModel& link,
                                             const CollectiveRun& run);

}  // namespace headrace::simulator
