// How long and how often one call of another machine goes on.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/status.h"

namespace headrace {

struct TryLimits {
  // For one call with all its tries; of what has a body, as long as it moves.
  std::chrono::milliseconds patience{60000};
  // How often what fails by a machine is tried.
  int tries = 8;
};

// A machine that is there answers a connection at once, one that is not, never.
inline constexpr std::chrono::milliseconds kConnectTime{5000};
// Bytes; who gives fewer before it fails counts as one that gave none.
inline constexpr size_t kMuchRead = 256 << 10;

struct Tries {
  using Clock = std::chrono::steady_clock;

  explicit Tries(const TryLimits& limits);

  // Waits for the next try, for pauses that grow; false where there is none.
  // Cancelled by CheckStop.
  StatusOr<bool> Again();
  std::chrono::milliseconds left() const;

  int most;
  Clock::time_point end;
  int done = 0;
  std::chrono::milliseconds pause;
  bool reached = false;  // a try that failed may have been done
};

// Whether another try may help: the peer, not the request, was at fault.
bool IsTransient(const Status& s);

// The seconds that an environment variable tells, or those of TryLimits.
// InvalidArgument where it tells none.
StatusOr<std::chrono::milliseconds> PatienceOf(const char* variable);

}  // namespace headrace
