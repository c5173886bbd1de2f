// The ways in which TensorFlow's tasks bring collectives about, part by part.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "distributed/group/parts.h"
#include "ops/collective/collective.h"

namespace headrace::distributed {

// One member in one collective, and how it meets the others. Parts have names
// that all members form alike.
struct RingMeeting {
  const CollectiveCall& call;
  int rank = 0, size = 0;
  int source = -1;  // of a broadcast
  // Leaves a part for the member that asks for it by that name.
  std::function<void(const std::string& part, Bytes content)> give;
  // Asks a member for a part of so many bytes, which the function waits for.
  using Take = std::function<StatusOr<Bytes>()>;
  std::function<StatusOr<Take>(int from, const std::string& part, int64_t size)>
      ask;
};

// What the collective gives this member. Internal for a reduce-scatter, which
// TensorFlow's rings do not know.
StatusOr<Tensor> GoRound(const RingMeeting& meeting);

// Whom a member of a broadcast sends the tensor to, in order.
std::vector<int> BroadcastTargets(int rank, int size, int source);

// What names of parts say of a loop of the function that is called, by the name
// of the loop's operation.
uint64_t LoopFrame(StringView loop);

}  // namespace headrace::distributed
