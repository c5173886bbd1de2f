// Events in time, for what happens within the process: real time on a thread,
// or a clock that is moved by hand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// Thread-safe. Functions run one at a time, those of one moment in the order in
// which they were asked for; they must not wait, and may ask for more.
class EventLoop {
 public:
  using Event = std::pair<Clock::time_point, int64_t>;

  virtual ~EventLoop() = default;
  virtual Clock::time_point Now() = 0;
  virtual Event At(Clock::time_point when, std::function<void()> f) = 0;
  // Nothing where it has run or runs.
  virtual void Forget(const Event& event) = 0;

  void Soon(std::function<void()> f) { At(Now(), std::move(f)); }
  // A thread of its own, which ends with the loop, and with it what has not
  // run. ResourceExhausted where there is no thread.
  static StatusOr<std::unique_ptr<EventLoop>> Real();
};

// What is to run, in order.
class EventQueue {
 public:
  EventLoop::Event Add(Clock::time_point when, std::function<void()> f) {
    const EventLoop::Event event(when, next_++);
    events_.emplace(event, std::move(f));
    return event;
  }
  // What it let go, which may own what ends with it.
  std::function<void()> Remove(const EventLoop::Event& event) {
    auto node = events_.extract(event);
    return node ? std::move(node.mapped()) : nullptr;
  }
  // The moment of the first; max() where there is none.
  Clock::time_point First() const {
    return events_.empty() ? Clock::time_point::max()
                           : events_.begin()->first.first;
  }
  std::function<void()> TakeFirst() {
    return std::move(events_.extract(events_.begin()).mapped());
  }

 private:
  std::map<EventLoop::Event, std::function<void()>> events_;
  int64_t next_ = 0;
};

// Events run in RunUntil, and it is always as late as that has come.
class ManualLoop : public EventLoop {
 public:
  Clock::time_point Now() override {
    const MutexLock lock(mutex_);
    return now_;
  }
  Event At(Clock::time_point when, std::function<void()> f) override {
    const MutexLock lock(mutex_);
    return queue_.Add(std::max(when, now_), std::move(f));
  }
  void Forget(const Event& event) override {
    std::function<void()> forgotten;
    const MutexLock lock(mutex_);
    forgotten = queue_.Remove(event);
  }
  void RunUntil(Clock::time_point end);
  // Until nothing is left before `end`; the moment of the last.
  Clock::time_point RunAll(Clock::time_point end);
  // The next event, where there is one until `end`.
  bool RunOne(Clock::time_point end);

 private:
  Mutex mutex_;
  Clock::time_point now_ ABSL_GUARDED_BY(mutex_);
  EventQueue queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
