#include "distributed/request_ids.h"

#include <new>
#include <random>
#include <utility>

namespace headrace::distributed {
namespace {

uint64_t RandomBits() {
  static Mutex mutex;  // of `bits`
  static std::mt19937_64* const bits = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return new std::mt19937_64(seed);
  }();
  MutexLock lock(mutex);
  return (*bits)();
}

}  // namespace

size_t RequestIds::HomeOf(int64_t id) const {
  uint64_t bits = (static_cast<uint64_t>(id) ^ secret_) * secret_;
  bits ^= bits >> 32;
  return bits * 0x9e3779b97f4a7c15u >> 46;  // 18 bits
}

size_t RequestIds::SlotOf(int64_t id) const {
  size_t at = HomeOf(id);
  while (slots_[at] != 0 && slots_[at] != id) at = (at + 1) % kSlots;
  return at;
}

void RequestIds::Remove(int64_t id) {
  size_t gap = SlotOf(id);
  // What lies behind the gap, and would not be found over it, moves there.
  for (size_t at = (gap + 1) % kSlots; slots_[at] != 0;
       at = (at + 1) % kSlots) {
    const size_t from_home = (at - HomeOf(slots_[at])) % kSlots;
    if (from_home < (at - gap) % kSlots) continue;
    slots_[gap] = slots_[at];
    gap = at;
  }
  slots_[gap] = 0;
}

Status RequestIds::Track(int64_t id, StringView method,
                         const google::protobuf::Message& request) {
  if (id == 0) return OkStatus();
  MutexLock lock(mutex_);
  if (order_.empty()) {
    try {
      slots_.resize(kSlots);
      order_.resize(kRemembered);
    } catch (const std::bad_alloc&) {
      slots_.clear();
      return ResourceExhausted("no memory for the numbers of requests");
    }
  }
  const size_t at = SlotOf(id);
  if (slots_[at] == id) {
    return Aborted("The same ", method, " request was received twice. ",
                   request.ShortDebugString());
  }
  slots_[at] = id;
  if (const int64_t oldest = std::exchange(order_[next_], id); oldest != 0) {
    Remove(oldest);
  }
  next_ = (next_ + 1) % kRemembered;
  return OkStatus();
}

int64_t NewRequestId() {
  int64_t id = 0;
  while (id == 0) id = static_cast<int64_t>(RandomBits());
  return id;
}

int64_t NewStepId() {
  int64_t id = 0;
  while (id == 0) id = static_cast<int64_t>(RandomBits() >> 8);
  return id;
}

}  // namespace headrace::distributed
