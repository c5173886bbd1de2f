// The ways in which members bring a collective about.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "distributed/wire/bytes.h"
#include "ops/collective/collective.h"

namespace headrace::distributed {

// One member's side in a step of a collective, by whatever carries its parts.
// For the member's own thread.
class Side {
 public:
  virtual ~Side() = default;
  // `last`: there are no more for that rank.
  virtual void Give(int to, Bytes part, bool last) = 0;
  // Asks for parts; `payload` is one for that rank where the two swap.
  virtual void Ask(int from, bool swaps, Bytes payload) = 0;
  // Waits for the next part.
  virtual StatusOr<Bytes> Take(int from) = 0;
  // The member waits for nothing more: what it has given may be on its way.
  virtual void Leave() = 0;
};

// One member in one collective: what it knows, and how it meets the others.
struct Meeting {
  const CollectiveCall& call;
  int rank = 0, size = 0;
  // The member's side in a step, for whose parts those ranks will ask.
  std::function<StatusOr<std::shared_ptr<Side>>(int step, std::set<int> askers)>
      begin;
};

// What the collective gives this member.
StatusOr<Tensor> GoTogether(const Meeting& meeting);

}  // namespace headrace::distributed
