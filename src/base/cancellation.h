// Asking work to stop: a flag that long-running code looks at between steps
// and between tiles, with an optional deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/status.h"

namespace headrace {

// One request to stop, shared by everything that works for one call.
// Thread-safe. Once cancelled it stays so. A token made with a parent is also
// cancelled when the parent is; the parent must outlive it.
class CancellationToken {
 public:
  using Clock = std::chrono::steady_clock;
  using CallbackId = int64_t;
  static constexpr CallbackId kAlreadyCancelled = -1;

  CancellationToken() = default;
  explicit CancellationToken(const CancellationToken* parent)
      : parent_(parent) {}
  explicit CancellationToken(Clock::time_point deadline,
                             const CancellationToken* parent = nullptr)
      : parent_(parent), deadline_(deadline) {}
  CancellationToken(const CancellationToken&) = delete;
  CancellationToken& operator=(const CancellationToken&) = delete;

  // Cancels, and calls the callbacks on this thread. Only the first call has
  // an effect, and it returns after its callbacks have.
  void Cancel();

  // Whether to stop. A load or two; with a deadline a look at the clock too
  // (about 30 ns), so call it once a tile, not once an element.
  bool cancelled() const {
    if (cancelled_.load(std::memory_order_acquire)) return true;
    if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_) {
      return true;
    }
    return parent_ != nullptr && parent_->cancelled();
  }

  // OK, Cancelled or DeadlineExceeded.
  Status status() const;

  // The earliest deadline of this token and its parents; time_point::max()
  // if there is none. Who blocks on a condition must wait no longer than this,
  // as nothing calls the callbacks when a deadline passes.
  Clock::time_point deadline() const;

  // `fn` is called once, from the thread that cancels this token itself (not
  // a parent). Returns kAlreadyCancelled, and drops `fn`, if it is too late.
  CallbackId AddCallback(std::function<void()> fn);
  // After this returns, the callback is not running and will not run. Must not
  // be called from the callback itself. Returns whether it was still pending.
  bool RemoveCallback(CallbackId id);

 private:
  struct Callback {
    CallbackId id;
    std::function<void()> fn;
  };
  const CancellationToken* const parent_ = nullptr;
  const Clock::time_point deadline_ = Clock::time_point::max();
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;          // guards callbacks_, next_id_
  std::mutex running_mutex_;  // held while callbacks run
  std::vector<Callback> callbacks_;
  CallbackId next_id_ = 0;
};

}  // namespace headrace
