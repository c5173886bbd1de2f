// Asking work to stop: a flag that long-running code looks at between steps
// and between tiles, with an optional deadline.
//
// What a thread's work listens to belongs to the thread: the tokens of the
// StopScopes around it and, on the main thread of a Python program, signals.
// Long-running code asks CheckStop(); the loops of base/thread_pool.h ask
// between their chunks, on all threads that help. Who hands work to a thread of
// its own opens a StopScope there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/status.h"

namespace headrace {

// One request to stop, shared by everything that works for one call.
// Thread-safe. Once cancelled it stays so.
class CancellationToken {
 public:
  using Clock = std::chrono::steady_clock;

  CancellationToken() = default;
  explicit CancellationToken(Clock::time_point deadline)
      : deadline_(deadline) {}
  CancellationToken(const CancellationToken&) = delete;
  CancellationToken& operator=(const CancellationToken&) = delete;

  void Cancel() { cancelled_.store(true, std::memory_order_release); }

  // Whether to stop. A load; with a deadline a look at the clock too (about
  // 30 ns), so call it once a tile, not once an element.
  bool cancelled() const {
    if (cancelled_.load(std::memory_order_acquire)) return true;
    return deadline_ != Clock::time_point::max() && Clock::now() >= deadline_;
  }
  // OK, Cancelled or DeadlineExceeded.
  Status status() const;

 private:
  const Clock::time_point deadline_ = Clock::time_point::max();
  std::atomic<bool> cancelled_{false};
};

// While it lives, what its thread does stops when `token` is cancelled, too.
// Scopes nest; a null token changes nothing. The first CheckStopOften inside
// looks, unless the scope is opened time and again (`paced`).
class StopScope {
 public:
  explicit StopScope(const CancellationToken* token, bool paced = false);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  friend class StopSources;
  const CancellationToken* const token_;
  const StopScope* const outer_;
};

// While it lives, what its thread does stops after so many milliseconds.
class Deadline {
 public:
  explicit Deadline(int64_t milliseconds);

 private:
  const CancellationToken token_;
  const StopScope scope_{&token_};
};

// What a thread listens to. A copy may be handed to threads that help it, as
// long as it waits for them.
class StopSources {
 public:
  static StopSources OfThisThread();
  // Whether nothing can ask for a stop.
  bool silent() const {
    return scope_ == nullptr && signals_ == Signals::kNever;
  }
  // In the child of a fork, which goes on as its main thread.
  static void ForgetThread() { here_.signals_ = Signals::kUnknown; }

 private:
  friend class StopScope;
  friend class AdoptedStops;
  friend class StopHold;
  friend class Stoppable;
  friend bool LoopsMayStop();
  friend void StopPoint();
  friend Status CheckStop();
  friend Status CheckStopOften();
  friend Status CheckTokens();
  void TellThread();
  Status status(bool ask = true);
  Status CheckAndPace();
  // What signals mean to a thread: it asks for them (the main thread), it looks
  // whether that one found one (its helpers), or nothing.
  enum class Signals : uint8_t { kUnknown, kNever, kLook, kAsk };

  const StopScope* scope_ = nullptr;
  Signals signals_ = Signals::kUnknown;
  bool loops_may_stop_ = false;
  // Of CheckStopOften: how many are passed over, now and each time.
  uint8_t skip_ = 0, pace_ = 0;
  int64_t last_ = 0;  // when one was not
  static constinit thread_local StopSources here_
      [[gnu::tls_model("initial-exec")]];
};

// While it lives, its thread listens to what another one listens to.
class AdoptedStops {
 public:
  explicit AdoptedStops(const StopSources& sources);
  ~AdoptedStops();
  AdoptedStops(const AdoptedStops&) = delete;
  AdoptedStops& operator=(const AdoptedStops&) = delete;

 private:
  const StopSources saved_;
};

// OK, or Cancelled or DeadlineExceeded where what this thread does should stop.
// Some tens of nanoseconds. On the main thread of a Python program it takes the
// GIL now and then, so hold no lock that who has the GIL may wait for.
Status CheckStop();
inline bool StopRequested() { return !CheckStop().ok(); }

// The same without asking for signals: for who holds locks that threads with
// the GIL may wait for.
Status CheckTokens();

// The same for loops of short turns, of a nanosecond: while calls follow each
// other fast it looks at every 64th alone.
inline Status CheckStopOften() {
  StopSources& here = StopSources::here_;
  if (here.skip_ != 0) [[likely]] {
    --here.skip_;
    return OkStatus();
  }
  return here.CheckAndPace();
}

// What a parallel loop throws instead of its remaining chunks.
struct Stopped {
  Status status;
};

// While it lives, the loops of this thread may throw Stopped: who makes one
// catches it. Kernels run so.
class Stoppable {
 public:
  Stoppable() : saved_(StopSources::here_.loops_may_stop_) {
    StopSources::here_.loops_may_stop_ = true;
  }
  ~Stoppable() { StopSources::here_.loops_may_stop_ = saved_; }
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  const bool saved_;
};

// In a kernel, throws Stopped where its work should stop; elsewhere nothing.
void StopPoint();

// For loops on one thread: a StopPoint about every millisecond of work.
class StopMeter {
 public:
  // `ns`: what the next turn takes, a guess within a factor of a few.
  void Add(double ns) {
    spent_ += ns;
    if (spent_ < 1e6) return;
    spent_ = 0;
    StopPoint();
  }

 private:
  double spent_ = 0;
};

// While it lives, they may not: around changes that must be whole, as of a
// variable, and around calls of code that no exception may cross.
class StopHold {
 public:
  StopHold() : saved_(StopSources::here_.loops_may_stop_) {
    StopSources::here_.loops_may_stop_ = false;
  }
  ~StopHold() { StopSources::here_.loops_may_stop_ = saved_; }
  StopHold(const StopHold&) = delete;
  StopHold& operator=(const StopHold&) = delete;

 private:
  const bool saved_;
};

inline bool LoopsMayStop() {
  return StopSources::here_.loops_may_stop_ && !StopSources::here_.silent();
}

// Signals. `poll` is called on the process' main thread, where it works, every
// few hundredths of a second: whether a signal's handler wants the work to end.
// From then on CheckStop says Cancelled there, and on the threads that help,
// until ClearInterrupt.
void SetSignalPoll(bool (*poll)());
// As if poll had said so.
void SetInterrupt();
void ClearInterrupt();
// Whether this is the thread that signals are for.
bool IsMainThread();

}  // namespace headrace
