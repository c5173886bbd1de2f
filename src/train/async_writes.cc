#include "train/async_writes.h"

#include <utility>

#include "base/guard.h"
#include "base/threads.h"

namespace headrace {

AsyncWrites::~AsyncWrites() {
  if (thread_.joinable()) thread_.join();
}

Status AsyncWrites::Start(std::function<Status()> write) {
  HR_RETURN_IF_ERROR(Wait());
  const auto run = [this, write = std::move(write)] {
    status_ = Guarded("writing", write);
  };
  StatusOr<std::thread> thread = StartThread(run);
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    run();
  }
  return OkStatus();
}

Status AsyncWrites::Wait() {
  if (thread_.joinable()) thread_.join();
  return std::exchange(status_, OkStatus());
}

}  // namespace headrace
