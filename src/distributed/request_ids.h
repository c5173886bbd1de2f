// Requests that may be answered once alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "google/protobuf/message.h"

namespace headrace::distributed {

// A number that no other request has: never 0.
int64_t NewRequestId();
// The same of a step, in 56 bits.
int64_t NewStepId();

// The numbers of the last requests of one method. Thread-safe. Takes all of
// its memory, 3 MB, with the first number: a table that grew for half an hour
// would look like a leak.
class RequestIds {
 public:
  // As many as upstream remembers of a worker's.
  static constexpr size_t kRemembered = 100'000;

  // Aborted, with upstream's text, for a number that came before; 0 is none.
  // ResourceExhausted without memory.
  Status Track(int64_t id, StringView method,
               const google::protobuf::Message& request);

 private:
  // Slots of a hash table, more than twice as many as numbers.
  static constexpr size_t kSlots = size_t{1} << 18;
  static_assert(kSlots > 2 * kRemembered);

  size_t HomeOf(int64_t id) const;
  // Where the number is, or may be put.
  size_t SlotOf(int64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Peers choose numbers, and shall not choose the places of them.
  const uint64_t secret_ = static_cast<uint64_t>(NewRequestId()) | 1;
  Mutex mutex_;
  // 0: empty. Numbers lie behind their homes without a gap between.
  std::vector<int64_t> slots_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> order_ ABSL_GUARDED_BY(mutex_);  // a ring, 0: none yet
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // of the ring: the oldest one
};

}  // namespace headrace::distributed
