// An answer that a member's thread waits for.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "distributed/transport.h"
#include "ops/queue/await_change.h"

namespace headrace::distributed {

struct Awaited {
  Mutex mutex;
  CondVar changed;
  bool there ABSL_GUARDED_BY(mutex) = false;
  Answer answer ABSL_GUARDED_BY(mutex);

  static std::function<void(Answer)> Taker(std::shared_ptr<Awaited> self) {
    return [self](Answer a) {
      MutexLock lock(self->mutex);
      self->answer = std::move(a);
      self->there = true;
      self->changed.NotifyAll();
    };
  }
  // As CheckStop allows.
  StatusOr<Answer> Wait() {
    MutexLock lock(mutex);
    while (!there) HR_RETURN_IF_ERROR(AwaitChange(mutex, changed));
    return answer;
  }
};

}  // namespace headrace::distributed
