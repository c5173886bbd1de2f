// Requests that may be answered once alone.
#pragma once

#include <deque>

#include "base/hash_map.h"
#include "base/mutex.h"
#include "base/status.h"
#include "google/protobuf/message.h"

namespace headrace::distributed {

// The numbers of the last requests of one method. Thread-safe.
class RequestIds {
 public:
  // As many as upstream remembers of a worker's.
  static constexpr size_t kRemembered = 100'000;

  // Aborted, with upstream's text, for a number that came before; 0 is none.
  Status Track(int64_t id, StringView method,
               const google::protobuf::Message& request);

 private:
  Mutex mutex_;
  std::deque<int64_t> order_ ABSL_GUARDED_BY(mutex_);
  HashSet<int64_t> seen_ ABSL_GUARDED_BY(mutex_);
};

// A number that no other request has: never 0.
int64_t NewRequestId();
// The same of a step, in 56 bits.
int64_t NewStepId();

}  // namespace headrace::distributed
