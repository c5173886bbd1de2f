// What a method sees of its call, which it may keep for longer than the call
// lasts.
#pragma once

#include <atomic>

#include "base/mutex.h"
#include "rpc/server.h"

namespace headrace {

class ServedCall;

// Shared by a call and its method.
class CallState {
 public:
  using Clock = RpcCall::Clock;

  CallState(ServedCall* call, const std::atomic<bool>& expired,
            Clock::time_point deadline)
      : expired_(expired), deadline_(deadline), call_(call) {}

  Clock::time_point deadline() const { return deadline_; }
  const RpcCall::Metadata& metadata();
  const std::string& peer();
  void OnCancel(std::function<void()> f);
  void Send(const grpc::ByteBuffer& part, std::function<void(bool)> sent);
  void Finish(RpcEnd end);

  // For the call: its client has gone, or its time has passed.
  void Cancel();
  void Written(bool ok);

 private:
  void Learn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::atomic<bool>& expired_;  // outlives call_
  const Clock::time_point deadline_;
  Mutex mutex_;
  ServedCall* call_ ABSL_GUARDED_BY(mutex_);  // null after the end
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool writes_ ABSL_GUARDED_BY(mutex_) = false;
  bool learned_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> sent_ ABSL_GUARDED_BY(mutex_);
  // That waits for what is being written.
  std::optional<RpcEnd> end_ ABSL_GUARDED_BY(mutex_);
  RpcCall::Metadata metadata_ ABSL_GUARDED_BY(mutex_);
  std::string peer_ ABSL_GUARDED_BY(mutex_);
};

// What the method holds of it.
std::shared_ptr<RpcCall> HandleOf(std::shared_ptr<CallState> state);

}  // namespace headrace
