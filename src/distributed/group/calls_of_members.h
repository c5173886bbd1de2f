// What all engines of collectives do alike with a member's call.
#pragma once

#include <chrono>
#include <utility>
#include <vector>

#include "ops/collective/collective.h"

namespace headrace::distributed {

// How long others are waited for: as the member says, else `otherwise`.
inline std::chrono::milliseconds PatienceOf(
    const GroupMember& member, std::chrono::milliseconds otherwise) {
  constexpr double kLongest = 1e8;  // beyond some years a time point overflows
  const double said = member.timeout_seconds;
  if (!(said > 0 && said < kLongest)) return otherwise;
  return std::chrono::milliseconds(static_cast<int64_t>(said * 1e3));
}

// What a call gives the only member of a group.
inline StatusOr<Tensor> ResultAlone(const CollectiveCall& call) {
  HR_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                      CollectiveResults(call, {call.input}));
  return std::move(results[0]);
}

}  // namespace headrace::distributed
