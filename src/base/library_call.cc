#include "base/library_call.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace headrace {
namespace {

// The count of calls under way; behind kEnded no thread but `ender` begins one.
constexpr int64_t kEnded = int64_t{1} << 62;
constinit std::atomic<int64_t> calls{0};
// The thread that ends the process; read behind kEnded only.
std::thread::id ender;
// How deep this thread is inside: an inner call must not wait for the outer.
constinit thread_local int calls_deep [[gnu::tls_model("initial-exec")]] = 0;

constexpr std::chrono::seconds kMostWait{10};
constexpr std::chrono::microseconds kLook{200};

// What exit() calls goes in the order opposite to that of registration: this is
// registered before the first call, and again when it is done, behind whatever
// static objects it made.
void AtExit() {
  [[maybe_unused]] static const int registered = std::atexit(EndLibraryCalls);
  // A child has one thread, and none of the calls of the others.
  [[maybe_unused]] static const int forks = pthread_atfork(
      nullptr, nullptr, [] { calls.store(calls_deep > 0 ? 1 : 0); });
}
void AtExitAgain() {
  [[maybe_unused]] static const int registered = std::atexit(EndLibraryCalls);
}

[[gnu::cold]] void StayOut() {
  if (std::this_thread::get_id() == ender) return;
  calls.fetch_sub(1, std::memory_order_release);
  for (;;) pause();
}

}  // namespace

LibraryCall::LibraryCall() {
  if (calls_deep++ > 0) return;
  AtExit();
  if (calls.fetch_add(1, std::memory_order_acq_rel) & kEnded) [[unlikely]]
    StayOut();
}

LibraryCall::~LibraryCall() {
  if (--calls_deep > 0) return;
  AtExitAgain();
  calls.fetch_sub(1, std::memory_order_release);
}

void EndLibraryCalls() {
  static constinit std::atomic<bool> begun{false};
  if (begun.exchange(true)) return;
  ender = std::this_thread::get_id();
  calls.fetch_or(kEnded, std::memory_order_acq_rel);
  // Calls of this thread that exit() was called from never end.
  const int64_t own = calls_deep > 0 ? 1 : 0;
  const auto end = std::chrono::steady_clock::now() + kMostWait;
  while ((calls.load(std::memory_order_acquire) & ~kEnded) > own &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace headrace
