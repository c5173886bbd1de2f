// PullTensors, between tasks of ours: a step asks another task once for all
// that it takes from there, and gets what is there as it comes, many tensors a
// message. A thousand small variables cost one call, where RecvTensor needs a
// thousand.
#pragma once

#include <functional>
#include <memory>

#include "distributed/transport.h"
#include "distributed/worker/pull.h"
#include "distributed/worker/steps.h"
#include "distributed/worker/worker.h"

namespace headrace::distributed {

// Begins to take what the step sends under these keys; `done` is called once
// for each, with its place among them. What ends it. Those that are known to be
// large are asked for by themselves at once.
std::function<void()> PullMany(
    const std::shared_ptr<Channel>& channel, int64_t step,
    const ExpectedKeysPtr& expected, const std::shared_ptr<LargeValues>& large,
    const std::function<void(size_t key, StatusOr<SentValue>)>& done);

// The method of the side that gives.
void AnswerPullMany(const std::shared_ptr<Worker>& worker,
                    const std::shared_ptr<ServerCall>& call,
                    const Bytes& request);

}  // namespace headrace::distributed
