// A cluster within the process whose clock is moved by hand: what happens in it
// takes the time that its links say, and no other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "distributed/event_loop.h"
#include "distributed/local_transport.h"
#include "simulator/links.h"

namespace headrace::simulator {

// So many bytes, of which nobody looks at one. At most kMostFill.
distributed::Bytes Fill(int64_t bytes);
inline constexpr int64_t kMostFill = (1 << 20) + (4 << 10);

class World {
 public:
  static StatusOr<std::unique_ptr<World>> Make(const LinkModel& model,
                                               uint64_t seed);

  distributed::EventLoop& loop() { return loop_; }
  Links& links() { return links_; }
  Clock::time_point Now() { return loop_.Now(); }
  // Runs f in so many seconds.
  void In(double seconds, std::function<void()> f) {
    loop_.At(loop_.Now() + InClock(seconds), std::move(f));
  }
  // Until that holds, looked at behind each event; DeadlineExceeded where
  // nothing is left to happen, or `seconds` are over.
  Status RunUntil(const std::function<bool()>& done, double seconds);
  // So many seconds.
  Status Pass(double seconds) {
    bool over = false;
    In(seconds, [&over] { over = true; });
    return RunUntil([&over] { return over; }, seconds + 1);
  }

  // Lets what is under way come to its end, when no task begins anything more:
  // what is let go in the middle of a call holds its task, and that the call.
  void Drain() { loop_.RunAll(Clock::time_point::max()); }

  // Since when each address is listened at, where it is.
  std::map<std::string, Clock::time_point> listens;

  std::unique_ptr<distributed::Transport> Of(const std::string& name) {
    return network_->Of(name);
  }

 private:
  World(const LinkModel& model, uint64_t seed) : links_(model, loop_, seed) {}

  distributed::ManualLoop loop_;
  Links links_;
  std::shared_ptr<distributed::LocalNetwork> network_;
};

}  // namespace headrace::simulator
