// How a worker takes a tensor from another, and how that gives it: RecvTensor,
// as TensorFlow has it, and, between tasks of ours and for large tensors,
// PullTensor, whose answer comes in parts. pull_many.h has those of a step
// together.
#pragma once

#include <memory>

#include "distributed/transport.h"
#include "distributed/wire/tensor_codec.h"
#include "distributed/worker/steps.h"
#include "distributed/worker/worker.h"

namespace headrace::distributed {

// Whether it comes in parts where that can be: for fewer bytes a second call
// costs more than it gains.
bool GoesInParts(const SentValue& value);

// Begins to take what the step sends under the key; `done` is called once. What
// ends it. `known_large`: it is to come in parts.
std::function<void()> Pull(std::shared_ptr<Channel> channel, int64_t step,
                           const std::string& key, LocalRendezvous::Done done,
                           bool known_large = false);

// As a value travels.
ReceivedTensor ReceivedOf(SentValue value);
SentValue SentOf(ReceivedTensor received);

// The methods of the side that gives.
void AnswerReceive(const std::shared_ptr<Worker>& worker,
                   const std::shared_ptr<ServerCall>& call,
                   const Bytes& request);
void AnswerPull(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call, const Bytes& request);

}  // namespace headrace::distributed
