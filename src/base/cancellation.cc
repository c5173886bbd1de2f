#include "base/cancellation.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>

namespace headrace {
namespace {

// Nanoseconds: below what a person notices after Ctrl-C, and so far apart that
// taking the GIL, which asking needs, does not show.
constexpr int64_t kAskEvery = 40'000'000;
// Asking may take long where other threads keep the interpreter: at most this
// part of the time goes into it.
constexpr int64_t kAskingShare = 20;

std::atomic<bool (*)()> signal_poll{nullptr};
std::atomic<bool> interrupted{false};

// As exact as a few milliseconds, which costs a fifth of an exact one.
int64_t RoughNow() {
  timespec t;
#if defined(CLOCK_MONOTONIC_COARSE)
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
  clock_gettime(CLOCK_MONOTONIC, &t);
#endif
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

thread_local int64_t next_ask = 0;

bool AskForSignals() {
  if (interrupted.load(std::memory_order_acquire)) return true;
  const int64_t begin = RoughNow();
  if (begin < next_ask) return false;
  bool (*poll)() = signal_poll.load(std::memory_order_acquire);
  if (poll == nullptr) return false;
  // Set before the call: else an op within the handler would ask again, without
  // end.
  next_ask = begin + kAskEvery;  // the handler may run ops
  if (poll()) interrupted.store(true, std::memory_order_release);
  const int64_t end = RoughNow();
  next_ask = end + std::max(kAskEvery, kAskingShare * (end - begin));
  return interrupted.load(std::memory_order_acquire);
}

}  // namespace

bool IsMainThread() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
  return pthread_main_np() != 0;
#else
  return true;  // the poll has to tell
#endif
}

constinit thread_local StopSources StopSources::here_;

StopScope::StopScope(const CancellationToken* token, bool paced)
    : token_(token), outer_(StopSources::here_.scope_) {
  if (token_) StopSources::here_.scope_ = this;
  if (!paced) StopSources::here_.skip_ = 0;
}

StopScope::~StopScope() { StopSources::here_.scope_ = outer_; }

Deadline::Deadline(int64_t milliseconds)
    : token_(CancellationToken::Clock::now() +
             std::chrono::milliseconds(
                 std::clamp<int64_t>(milliseconds, 0, int64_t{1} << 40))) {}

StopSources StopSources::OfThisThread() {
  here_.TellThread();
  return here_;
}

void StopSources::TellThread() {
  if (signals_ != Signals::kUnknown) return;
  if (signal_poll.load(std::memory_order_relaxed) == nullptr) return;
  signals_ = IsMainThread() ? Signals::kAsk : Signals::kNever;
}

Status StopSources::status(bool ask) {
  // The innermost first: its error names what ended it.
  for (const StopScope* s = scope_; s; s = s->outer_) {
    HR_RETURN_IF_ERROR(s->token_->status());
  }
  TellThread();
  const bool looks = signals_ == Signals::kLook || signals_ == Signals::kAsk;
  const bool stop = (looks && interrupted.load()) ||
                    (ask && signals_ == Signals::kAsk && AskForSignals());
  if (stop) [[unlikely]]
    return Cancelled("The operation was interrupted");
  return OkStatus();
}

Status StopSources::CheckAndPace() {
  // Elements of datasets may take nanoseconds each or seconds. While they come
  // fast, up to 63 of them pass between two looks (doubling from none); one
  // that took more than 2 ms goes back to looking each time. So a stop shows
  // within some milliseconds and a look costs next to nothing.
  constexpr int64_t kShort = 2'000'000;
  constexpr int kMostSkipped = 63;
  HR_RETURN_IF_ERROR(CheckStop());
  const int64_t now = RoughNow();
  pace_ = now - last_ > kShort ? 0 : std::min(2 * pace_ + 1, kMostSkipped);
  skip_ = pace_;
  last_ = now;
  return OkStatus();
}

AdoptedStops::AdoptedStops(const StopSources& sources)
    : saved_(StopSources::here_) {
  using Signals = StopSources::Signals;
  StopSources& here = StopSources::here_;
  here = sources;
  // Only the main thread may run signal handlers; helpers look at what it
  // found.
  if (sources.signals_ == Signals::kAsk && saved_.signals_ != Signals::kAsk) {
    here.signals_ = Signals::kLook;
  }
}

AdoptedStops::~AdoptedStops() { StopSources::here_ = saved_; }

Status CheckStop() {
  if (StopSources::here_.silent()) return OkStatus();
  return StopSources::here_.status();
}

Status CheckTokens() {
  if (StopSources::here_.silent()) return OkStatus();
  return StopSources::here_.status(/*ask=*/false);
}

void StopPoint() {
  if (!LoopsMayStop()) return;
  Status s = StopSources::here_.status();
  if (!s.ok()) [[unlikely]]
    throw Stopped{std::move(s)};
}

void SetSignalPoll(bool (*poll)()) {
  // The thread that goes on after a fork is the child's main thread.
  static const int installed =
      pthread_atfork(nullptr, nullptr, [] { StopSources::ForgetThread(); });
  (void)installed;
  signal_poll.store(poll);
}

void SetInterrupt() { interrupted.store(true, std::memory_order_release); }
void ClearInterrupt() { interrupted.store(false, std::memory_order_release); }

Status CancellationToken::status() const {
  // Before the clock: a request that came first is what is told, and it costs
  // less.
  if (cancelled_.load(std::memory_order_acquire)) {
    return Cancelled("The operation was cancelled");
  }
  if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_) {
    return DeadlineExceeded("The operation ran past its deadline");
  }
  return OkStatus();
}

}  // namespace headrace
