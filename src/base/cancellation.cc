#include "base/cancellation.h"

#include <algorithm>

namespace headrace {

void CancellationToken::Cancel() {
  if (cancelled_.load(std::memory_order_acquire)) return;
  std::lock_guard running(running_mutex_);
  std::vector<Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
    callbacks.swap(callbacks_);
  }
  for (Callback& c : callbacks) c.fn();
}

Status CancellationToken::status() const {
  if (cancelled_.load(std::memory_order_acquire)) {
    return Cancelled("The operation was cancelled");
  }
  if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_) {
    return DeadlineExceeded("The operation ran past its deadline");
  }
  return parent_ ? parent_->status() : OkStatus();
}

CancellationToken::Clock::time_point CancellationToken::deadline() const {
  return parent_ ? std::min(deadline_, parent_->deadline()) : deadline_;
}

CancellationToken::CallbackId CancellationToken::AddCallback(
    std::function<void()> fn) {
  std::lock_guard lock(mutex_);
  if (cancelled_.load(std::memory_order_acquire)) return kAlreadyCancelled;
  callbacks_.push_back({next_id_, std::move(fn)});
  return next_id_++;
}

bool CancellationToken::RemoveCallback(CallbackId id) {
  {
    std::lock_guard lock(mutex_);
    auto it = std::find_if(callbacks_.begin(), callbacks_.end(),
                           [id](const Callback& c) { return c.id == id; });
    if (it != callbacks_.end()) {
      callbacks_.erase(it);
      return true;
    }
  }
  // It may be running: wait for the canceller.
  std::lock_guard running(running_mutex_);
  return false;
}

}  // namespace headrace
