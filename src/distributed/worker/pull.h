// How a worker takes a tensor from another, and how that gives it: RecvTensor,
// as TensorFlow has it, and, between tasks of ours and for large tensors,
// PullTensor, whose answer comes in parts. pull_many.h has those of a step
// together.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "distributed/transport.h"
#include "distributed/wire/tensor_codec.h"
#include "distributed/worker/steps.h"
#include "distributed/worker/worker.h"

namespace headrace::distributed {

// A tensor of fewer bytes comes as one message: the second call costs more than
// it gains.
inline constexpr size_t kLeastInParts = size_t{1} << 20;
// gRPC sends messages of this size at several times the rate of large ones.
inline constexpr size_t kPullPart = size_t{1} << 20;

// The keys, of some thousands, whose last value came in parts: the next one is
// asked for in parts at once, which saves a call there and back. Thread-safe.
class LargeValues {
 public:
  bool Has(const std::string& key) const;
  void Came(const std::string& key, size_t bytes);
  void IsLarge(const std::string& key) { Came(key, SIZE_MAX); }

 private:
  mutable Mutex mutex_;
  std::set<std::string> keys_ ABSL_GUARDED_BY(mutex_);
};

// Whether it comes in parts where that can be: for fewer bytes a second call
// costs more than it gains.
bool GoesInParts(const SentValue& value);
// As a value travels.
ReceivedTensor ReceivedOf(SentValue value);
SentValue SentOf(ReceivedTensor received);

// Begins to take what the step sends under the key; `done` is called once. What
// ends it. `large`, of steps of the same graphs, may be null.
std::function<void()> Pull(std::shared_ptr<Channel> channel, int64_t step,
                           const std::string& key,
                           std::shared_ptr<LargeValues> large,
                           LocalRendezvous::Done done);

// The methods of the side that gives.
void AnswerReceive(const std::shared_ptr<Worker>& worker,
                   const std::shared_ptr<ServerCall>& call,
                   const Bytes& request);
void AnswerPull(const std::shared_ptr<Worker>& worker,
                const std::shared_ptr<ServerCall>& call, const Bytes& request);

}  // namespace headrace::distributed
