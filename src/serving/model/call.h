// One request under way.
#pragma once

#include <chrono>
#include <memory>

#include "base/cancellation.h"
#include "base/mutex.h"
#include "base/sandbox.h"

namespace headrace::serving {

// Shared by who reads a request, who runs it and who answers it. Thread-safe.
class Call {
 public:
  using Clock = CancellationToken::Clock;

  // `requests`: how many run in it; more than one in a batch.
  explicit Call(Clock::time_point deadline = Clock::time_point::max(),
                int requests = 1)
      : deadline_(deadline), requests_(requests), stop_(deadline) {}

  // Cancelled where the client went away or the deadline passed.
  CancellationToken& stop() { return stop_; }
  Clock::time_point deadline() const { return deadline_; }

  // What its tensors are to be made in, so that together they take at most so
  // many bytes for each request; null for 0: no limit. Who asks first says how
  // many.
  SandboxPtr LimitedTo(int64_t bytes_each);

 private:
  const Clock::time_point deadline_;
  const int requests_;
  CancellationToken stop_;
  Mutex mutex_;
  SandboxPtr limit_ ABSL_GUARDED_BY(mutex_);
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace headrace::serving
