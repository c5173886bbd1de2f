#include "simulator/links.h"

#include <algorithm>
#include <utility>

namespace headrace::simulator {

void Links::Carry(const std::string& from, const std::string& to, size_t bytes,
                  std::function<void()> arrive) {
  if (IsCut(from, to)) return;
  if (from == to) return loop_.Soon(std::move(arrive));
  const Clock::time_point now = loop_.Now();
  Task& sender = tasks_[from];
  const auto size = static_cast<double>(bytes);
  const double on_link = (size + model_.overhead) / model_.rate;
  // A link gives one message after the other; the first bytes are at the other
  // end when the last ones leave.
  const Clock::time_point left = Taken(&sender.out, now, on_link);
  const Clock::time_point leaves = std::max(now, left - InClock(on_link));
  sender.traffic.sent += static_cast<int64_t>(bytes);
  sender.traffic.out += on_link;
  double delay = model_.delay;
  if (model_.loss > 0 &&
      std::generate_canonical<double, 53>(random_) < model_.loss) {
    delay += model_.resend;
  }
  const double work = model_.message_work + size * model_.byte_work;
  // What comes in goes on as it comes, one message after the other.
  loop_.At(leaves + InClock(delay), [this, from, to, bytes, on_link, work,
                                     last = left + InClock(delay),
                                     arrive = std::move(arrive)] {
    if (IsCut(from, to)) return;
    Task& receiver = tasks_[to];
    const Clock::time_point came =
        std::max(last, Taken(&receiver.in, loop_.Now(), on_link));
    receiver.traffic.received += static_cast<int64_t>(bytes);
    receiver.traffic.in += on_link;
    receiver.traffic.work += work;
    ++receiver.traffic.messages;
    if (shared_.empty()) {
      receiver.worked = std::max(came, receiver.worked) + InClock(work);
      loop_.At(receiver.worked, arrive);
      return;
    }
    loop_.At(came, [this, &receiver, work, arrive] {
      // What comes first is handed on first.
      receiver.worked = std::max(receiver.worked, Worked(work));
      loop_.At(receiver.worked, arrive);
    });
  });
}

Clock::time_point Links::Taken(Clock::time_point* own, Clock::time_point from,
                               double on_link) const {
  *own = std::max(*own, from - InClock(model_.burst / model_.rate)) +
         InClock(on_link);
  return std::max(*own, from);
}

void Links::Work(const std::string& task, double seconds,
                 std::function<void()> then) {
  tasks_[task].traffic.work += seconds;
  loop_.At(shared_.empty() ? loop_.Now() + InClock(seconds) : Worked(seconds),
           std::move(then));
}

Clock::time_point Links::Worked(double seconds) {
  const auto first = std::min_element(shared_.begin(), shared_.end());
  *first = std::max(loop_.Now(), *first) + InClock(seconds);
  return *first;
}

}  // namespace headrace::simulator
