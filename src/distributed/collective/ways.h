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

// What the collective gives this member.
StatusOr<Tensor> GoTogether(const Meeting& meeting);

}  // namespace headrace::distributed
