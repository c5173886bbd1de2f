#include "train/async_writes.h"

#include <utility>

namespace headrace {

AsyncWrites::~AsyncWrites() {
  if (thread_.joinable()) thread_.join();
}

Status AsyncWrites::Start(std::function<Status()> write) {
  HR_RETURN_IF_ERROR(Wait());
  thread_ =
      std::thread([this, write = std::move(write)] { status_ = write(); });
  return OkStatus();
}

Status AsyncWrites::Wait() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(status_, OkStatus());
}

}  // namespace headrace
