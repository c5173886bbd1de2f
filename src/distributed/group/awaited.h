// An answer that a member's thread waits for.
#pragma once

#include <functional>
#include <memory>
#include <string>
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

// The answer to one call; as CheckStop allows, and then the call ends.
inline StatusOr<Answer> AnswerTo(Channel& channel, const std::string& path,
                                 Bytes request, const CallOptions& options) {
  const auto awaited = std::make_shared<Awaited>();
  const auto call =
      channel.Start(path, std::move(request), options, Awaited::Taker(awaited));
  StatusOr<Answer> answer = awaited->Wait();
  if (!answer.ok()) call->Cancel();
  return answer;
}

// A tenth of a second, before a task is asked again; as CheckStop says.
inline Status WaitToAskAgain() {
  Mutex mutex;  // of the wait alone
  CondVar never;
  MutexLock lock(mutex);
  for (int i = 0; i < 5; ++i) HR_RETURN_IF_ERROR(AwaitChange(mutex, never));
  return OkStatus();
}

}  // namespace headrace::distributed
