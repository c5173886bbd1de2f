// Calls of services without a transport, for tests.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "distributed/messages.h"

namespace headrace::distributed {

// A call, and its answer. Whoever sends parts is told that nobody reads on,
// unless it is made to take them.
class TestCall : public ServerCall {
 public:
  explicit TestCall(bool takes_parts = false) : takes_parts_(takes_parts) {}

  const Metadata& metadata() const override { return metadata_; }
  std::string peer() const override { return "test"; }
  Clock::time_point deadline() const override {
    return Clock::time_point::max();
  }
  void OnCancel(std::function<void()> f) override {
    MutexLock lock(mutex_);
    if (!answer_) cancel_ = std::move(f);
  }
  void Send(Bytes part, std::function<void(bool)> sent) override {
    {
      MutexLock lock(mutex_);
      parts_.push_back(std::move(part));
    }
    sent(takes_parts_);
  }
  void Finish(Answer answer) override {
    std::function<void()> over;  // ends behind the lock
    MutexLock lock(mutex_);
    if (answer_) return;
    answer_ = std::move(answer);
    over = std::exchange(cancel_, nullptr);
    changed_.NotifyAll();
  }

  void Cancel() {
    std::function<void()> cancel;
    {
      MutexLock lock(mutex_);
      cancel = std::exchange(cancel_, nullptr);
    }
    if (cancel) cancel();
  }
  bool ended() const {
    MutexLock lock(mutex_);
    return answer_.has_value();
  }
  std::vector<Bytes> parts() const {
    MutexLock lock(mutex_);
    return parts_;
  }
  // Waits for it.
  Answer answer() {
    MutexLock lock(mutex_);
    while (!answer_) changed_.Wait(mutex_);
    return *answer_;
  }

 private:
  const bool takes_parts_;
  const Metadata metadata_{};
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Bytes> parts_ ABSL_GUARDED_BY(mutex_);
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

using Methods = std::map<std::string, Method>;

inline std::shared_ptr<TestCall> StartCall(const Methods& methods,
                                           const std::string& path,
                                           std::string bytes,
                                           bool takes_parts = false) {
  auto call = std::make_shared<TestCall>(takes_parts);
  methods.at(path)(call, Bytes(std::move(bytes)));
  return call;
}

inline Status StatusFrom(const std::shared_ptr<TestCall>& call) {
  return StatusOf(call->answer());
}

}  // namespace headrace::distributed
