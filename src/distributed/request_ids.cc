#include "distributed/request_ids.h"

#include <random>

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

Status RequestIds::Track(int64_t id, StringView method,
                         const google::protobuf::Message& request) {
  if (id == 0) return OkStatus();
  MutexLock lock(mutex_);
  if (!seen_.insert(id).second) {
    return Aborted("The same ", method, " request was received twice. ",
                   request.ShortDebugString());
  }
  order_.push_back(id);
  if (order_.size() > kRemembered) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
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
