// How a worker takes a tensor from another, and how that gives it: RecvTensor,
// as TensorFlow has it, and, between tasks of ours and for large tensors,
// PullTensor, whose answer comes in parts.
#pragma once

#include <memory>

#include "distributed/transport.h"
#include "distributed/worker/steps.h"
#include "distributed/worker/worker.h"

namespace headrace::distributed {

// A tensor of fewer bytes comes as one message: the second call costs more than
// it gains.
inline constexpr size_t kLeastInParts = size_t{1} << 20;
// gRPC sends messages of this size at several times the rate of large ones.
inline constexpr size_t kPullPart = size_t{1} << 20;

// Begins to take what the step sends under the key; `done` is called once. What
// ends it.
std::function<void()> Pull(std::shared_ptr<Channel> channel, int64_t step,
                           const std::string& key, LocalRendezvous::Done done);

// The methods of the side that gives.
void AnswerReceive(const std::shared_ptr<Worker>& worker,
                   const std::shared_ptr<ServerCall>& call,
                   const Bytes& request);
void AnswerPull(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call, const Bytes& request);

}  // namespace headrace::distributed
