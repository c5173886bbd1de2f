// Which value lies where, and for how long.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/program.h"
#include "runtime/side_by_side.h"

namespace headrace {

struct MemoryPlan {
  // Per value: its place in the arena, or -1 (constants, feeds, fetches,
  // shapes unknown, and what an op may keep).
  std::vector<int64_t> offset;
  // Per value: the last call that reads it or a view of it (its own if none);
  // INT64_MAX for fetches.
  std::vector<int64_t> last_use;
  // Per value: read (or looked at) by several strands of the group that holds
  // its last use, so that nobody may write over it before the group's end.
  std::vector<bool> crossed;
  int64_t arena_bytes = 0;
};

// Inputs whose memory output 0 of a call (with its kernel) may take over when
// dtype and shape agree and nobody else reads it; bit i: input i.
uint32_t InPlaceInputs(const Call& call);

// Every call's kernel must be bound. No strand of `groups` takes memory that
// another may still look at.
MemoryPlan PlanMemory(const Program& p, absl::Span<const SideGroup> groups);

}  // namespace headrace
