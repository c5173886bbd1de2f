#include "distributed/event_loop.h"

#include <algorithm>
#include <thread>

#include "base/threads.h"

namespace headrace::distributed {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestSleep{60'000};

// What the thread and the loop share: the loop may end on its own thread.
struct LoopState {
  Mutex mutex;
  CondVar changed;
  EventQueue queue ABSL_GUARDED_BY(mutex);
  bool ends ABSL_GUARDED_BY(mutex) = false;

  // The next that is due; null at the end.
  std::function<void()> Next() {
    const MutexLock lock(mutex);
    while (!ends) {
      const Clock::time_point first = queue.First(), now = Clock::now();
      if (first <= now) return queue.TakeFirst();
      if (first == Clock::time_point::max()) {
        changed.Wait(mutex);
        continue;
      }
      changed.WaitFor(mutex,
                      std::min(kLongestSleep,
                               std::chrono::ceil<milliseconds>(first - now)));
    }
    return nullptr;
  }
};

class RealLoop : public EventLoop {
 public:
  ~RealLoop() override {
    {
      const MutexLock lock(state_->mutex);
      state_->ends = true;
      state_->changed.NotifyAll();
    }
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
  Status Start() {
    HR_ASSIGN_OR_RETURN(thread_, StartThread([state = state_] {
                          while (const auto f = state->Next()) f();
                        }));
    return OkStatus();
  }
  Clock::time_point Now() override { return Clock::now(); }
  Event At(Clock::time_point when, std::function<void()> f) override {
    const MutexLock lock(state_->mutex);
    const Event event = state_->queue.Add(when, std::move(f));
    if (state_->queue.First() == when) state_->changed.NotifyOne();
    return event;
  }
  void Forget(const Event& event) override {
    std::function<void()> forgotten;
    const MutexLock lock(state_->mutex);
    forgotten = state_->queue.Remove(event);
  }

 private:
  const std::shared_ptr<LoopState> state_ = std::make_shared<LoopState>();
  std::thread thread_;
};

}  // namespace

StatusOr<std::unique_ptr<EventLoop>> EventLoop::Real() {
  auto loop = std::make_unique<RealLoop>();
  HR_RETURN_IF_ERROR(loop->Start());
  return std::unique_ptr<EventLoop>(std::move(loop));
}

bool ManualLoop::RunOne(Clock::time_point end) {
  std::function<void()> f;
  {
    const MutexLock lock(mutex_);
    const Clock::time_point first = queue_.First();
    if (first > end || first == Clock::time_point::max()) return false;
    now_ = first;
    f = queue_.TakeFirst();
  }
  f();
  return true;
}

void ManualLoop::RunUntil(Clock::time_point end) {
  RunAll(end);
  const MutexLock lock(mutex_);
  now_ = std::max(now_, end);
}

Clock::time_point ManualLoop::RunAll(Clock::time_point end) {
  while (RunOne(end)) continue;
  return Now();
}

}  // namespace headrace::distributed
