// Which ops may wait, as their files state: HR_OP(...).Traits({kMayWait}).
#pragma once

#include <functional>
#include <memory>

#include "op/op_def.h"

namespace headrace {

// The op's kernel may wait, without working, for what other steps of the same
// run or other threads do: for an element of a queue, a lock, Python. Plans run
// what does not depend on it meanwhile (runtime/overlap.h).
inline constexpr OpTrait kMayWait = static_cast<OpTrait>(23);
// Such an op that has changed nothing when it comes to wait, and asks
// WaitingRefused() before: plans try it before they give it a thread.
inline constexpr OpTrait kMayBeTried = static_cast<OpTrait>(22);
static_assert(static_cast<int>(OpTrait::kTakesLists) < 22);

// The place of a call in a line that it shares with others: what comes up for
// it is kept for it while this lives, and is theirs again behind that. So calls
// that wait without a thread have their turn as those do that have one.
class WaitingPlace {
 public:
  virtual ~WaitingPlace() = default;
  // Calls `ready` once, perhaps at once, on any thread, when the call is to be
  // tried again. It may be called when the run is over, and this is gone.
  virtual void Await(std::function<void()> ready) = 0;
};

// While it lives, ops with kMayBeTried that this thread runs end with
// WouldWait() where they would wait.
class WaitRefusal {
 public:
  // `place`: where a call that ends so leaves its place, if it has one, and
  // looks for it when it is tried again; null: it is not to have one.
  explicit WaitRefusal(std::shared_ptr<WaitingPlace>* place = nullptr) {
    on_ = true;
    place_ = place;
  }
  ~WaitRefusal() {
    on_ = false;
    place_ = nullptr;
  }
  WaitRefusal(const WaitRefusal&) = delete;
  WaitRefusal& operator=(const WaitRefusal&) = delete;
  // Of this thread: where a call may leave its place, and the place that one
  // has left which is tried again; null where there is none.
  static std::shared_ptr<WaitingPlace>* Place() { return place_; }
  static WaitingPlace* Left() { return place_ ? place_->get() : nullptr; }

 private:
  friend bool WaitingRefused();
  static constinit inline thread_local bool on_
      [[gnu::tls_model("initial-exec")]] = false;
  static constinit inline thread_local std::shared_ptr<WaitingPlace>* place_
      [[gnu::tls_model("initial-exec")]] = nullptr;
};
inline bool WaitingRefused() { return WaitRefusal::on_; }

inline constexpr char kWouldWait[] = "headrace/would_wait";
inline Status WouldWait() {
  Status s = absl::UnavailableError("the call would wait");
  s.SetPayload(kWouldWait, absl::Cord());
  return s;
}
inline bool IsWouldWait(const Status& s) {
  return absl::IsUnavailable(s) && s.GetPayload(kWouldWait).has_value();
}

// A kernel of such an op that tells when it is worth trying again, so that
// nobody waits for it: plans then take no thread for it.
class AwaitingKernel {
 public:
  virtual ~AwaitingKernel() = default;
  // Behind a Run that ended with WouldWait(), on its thread: calls `ready`
  // once, perhaps at once, on any thread, when the next Run would not end so.
  // `ready` may be called when the run is over.
  virtual void Await(std::function<void()> ready) = 0;
};

}  // namespace headrace
