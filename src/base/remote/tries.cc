#include "base/remote/tries.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "base/cancellation.h"

namespace headrace {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kFirstPause{100}, kLongestPause{2000}, kSlice{50};
constexpr double kLongestPatience = 86400;  // seconds

}  // namespace

Tries::Tries(const TryLimits& limits)
    : most(limits.tries),
      end(Clock::now() + limits.patience),
      pause(kFirstPause) {}

StatusOr<bool> Tries::Again() {
  if (++done >= most || Clock::now() >= end) return false;
  const auto until = std::min(Clock::now() + pause, end);
  pause = std::min(pause * 2, kLongestPause);
  while (Clock::now() < until) {
    HR_RETURN_IF_ERROR(CheckStop());
    std::this_thread::sleep_for(kSlice);
  }
  return true;
}

Milliseconds Tries::left() const {
  return std::max(Milliseconds(1),
                  std::chrono::duration_cast<Milliseconds>(end - Clock::now()));
}

bool IsTransient(const Status& s) {
  return absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
}

StatusOr<Milliseconds> PatienceOf(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return TryLimits().patience;
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0) ||
      seconds > kLongestPatience) {
    return InvalidArgument(variable, " is '", text, "', no number of seconds");
  }
  return Milliseconds(
      std::max<int64_t>(1, static_cast<int64_t>(seconds * 1000)));
}

}  // namespace headrace
