// The links of a simulated cluster: when bytes that one task sends come to
// another.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "distributed/event_loop.h"

namespace headrace::simulator {

using distributed::Clock;

// Alike for all tasks, each of which has one link to a switch that holds nobody
// up. Seconds and bytes.
struct LinkModel {
  // Of bytes that tasks send each other, in each direction of each link.
  double rate = 117e6;
  // One way, of each message, beside what its bytes take.
  double delay = 100e-6;
  // What a message takes on the link beside its bytes.
  double overhead = 60;
  // What goes through at once where nothing went for a while, as a shaped
  // link's token bucket lets it.
  double burst = 0;
  // What the receiving task's transport, one thread of it, does a message and a
  // byte.
  double message_work = 30e-6, byte_work = 0.4e-9;
  // What a member's own thread does for a byte that it merges or keeps.
  double merge_work = 0.3e-9;
  // The share of messages of which something is lost, and the time until it is
  // sent again.
  double loss = 0, resend = 0.2;
  // Processors that all tasks share, as those of one machine do; 0: each task
  // has one for its transport and one for its own thread.
  int processors = 0;
};

class Links {
 public:
  Links(const LinkModel& model, distributed::EventLoop& loop, uint64_t seed)
      : model_(model), loop_(loop), random_(seed), shared_(model.processors) {}

  // Has `arrive` run when so many bytes that are sent now have come; never
  // where they are lost.
  void Carry(const std::string& from, const std::string& to, size_t bytes,
             std::function<void()> arrive);
  // Has `then` run when the task's own thread has worked for so many seconds.
  void Work(const std::string& task, double seconds,
            std::function<void()> then);
  // Nothing leaves that task any more, and nothing comes to it.
  void Cut(const std::string& task) { cut_.insert(task); }
  void Mend(const std::string& task) { cut_.erase(task); }
  const LinkModel& model() const { return model_; }

  struct Traffic {
    int64_t sent = 0, received = 0;  // bytes of messages
    int64_t messages = 0;            // that it received
    double out = 0, in = 0;          // seconds that its link was taken
    double work = 0;                 // of its processor
  };
  const Traffic& Of(const std::string& task) { return tasks_[task].traffic; }

 private:
  struct Task {
    // When its link, each way, and its transport's thread are free again.
    Clock::time_point out, in, worked;
    Traffic traffic;
  };
  bool IsCut(const std::string& from, const std::string& to) const {
    return !cut_.empty() && (cut_.contains(from) || cut_.contains(to));
  }
  // When a link that is free at `own` has taken what comes at `from`.
  Clock::time_point Taken(Clock::time_point* own, Clock::time_point from,
                          double on_link) const;
  // When work that is to be done now is, by the shared processor that is free
  // first.
  Clock::time_point Worked(double seconds);

  const LinkModel model_;
  distributed::EventLoop& loop_;
  std::mt19937_64 random_;
  std::unordered_map<std::string, Task> tasks_;
  std::vector<Clock::time_point> shared_;  // when each is free again
  std::set<std::string> cut_;
};

inline Clock::duration InClock(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds));
}
inline double Seconds(Clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace headrace::simulator
