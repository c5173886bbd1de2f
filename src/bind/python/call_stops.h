// What tf.experimental.Cancellation and SafeMode ask of calls: Python knows
// which are entered where a call is made, as they follow its contexts
// (coroutines have their own), and the engine listens to the scopes of its
// threads.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

#include "base/cancellation.h"
#include "bind/python/python.h"

namespace headrace::bind {

// How many `with` blocks of either are open, in any thread. The GIL
// guards it.
inline int entered_cancellations = 0;

// Around one call from Python; made and destroyed with the GIL held. Ordinary
// calls, outside such blocks, pay a comparison.
class CallStops {
 public:
  CallStops() {
    if (entered_cancellations != 0) [[unlikely]]
      Open();
  }
  ~CallStops() {
    if (scopes_ != nullptr) [[unlikely]]
      Close();
  }
  CallStops(const CallStops&) = delete;
  CallStops& operator=(const CallStops&) = delete;

  // Whether the call is to end before it begins.
  Status status() const { return scopes_ ? CheckTokens() : OkStatus(); }

 private:
  struct Scopes;
  [[gnu::cold]] void Open();
  [[gnu::cold]] void Close();

  Scopes* scopes_ = nullptr;  // null: nothing is asked
};

// f(), a Status or a StatusOr, without the GIL: it may wait, for files or other
// machines. Where the call is to end before it begins, the error of that.
template <typename F>
auto CallWithoutGil(F&& f) -> decltype(f()) {
  const CallStops stops;
  HR_RETURN_IF_ERROR(stops.status());
  const WithoutGil unlocked;
  return f();
}

// At most 95 years, which any clock can tell. `seconds` is a number.
std::chrono::nanoseconds TimeOf(double seconds);

void AddCancellation(nanobind::module_& m);

}  // namespace headrace::bind
