// One request under way.
#pragma once

#include <chrono>
#include <memory>

#include "base/cancellation.h"

namespace headrace::serving {

// Shared by who reads a request, who runs it and who answers it. Thread-safe.
class Call {
 public:
  using Clock = CancellationToken::Clock;

  explicit Call(Clock::time_point deadline = Clock::time_point::max())
      : deadline_(deadline), stop_(deadline) {}

  // Cancelled where the client went away or the deadline passed.
  CancellationToken& stop() { return stop_; }
  Clock::time_point deadline() const { return deadline_; }

 private:
  const Clock::time_point deadline_;
  CancellationToken stop_;
};
using CallPtr = std::shared_ptr<Call>;

}  // namespace headrace::serving
