#include "runtime/waiting_steps.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/guard.h"
#include "base/job_threads.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/timeline.h"
#include "op/processor.h"

namespace headrace {
namespace {

// Python functions may wait for each other; on machines with few processors
// more of them than these have a thread.
constexpr int kLeastThreads = 16;
// A stop is not felt to be late.
constexpr std::chrono::milliseconds kLooksForStop{20};

constinit thread_local int inter_op_threads [[gnu::tls_model("initial-exec")]] =
    0;

std::atomic<int> default_threads{0};

}  // namespace

InterOpScope::InterOpScope(int threads)
    : saved_(std::exchange(inter_op_threads, threads)) {}
InterOpScope::~InterOpScope() { inter_op_threads = saved_; }
int InterOpScope::Threads() {
  if (inter_op_threads > 0) return inter_op_threads;
  const int set = default_threads.load(std::memory_order_relaxed);
  if (set > 0) return set;
  return std::max(kLeastThreads, DefaultNumThreads());
}

void InterOpScope::SetDefault(int threads) { default_threads = threads; }

// What the run's thread and those of its steps share; the last of them frees
// it.
struct WaitingSteps::Shared {
  Mutex mutex;
  CondVar changed;
  struct Event {
    Job job;
    Status status;
    bool again = false;
  };
  explicit Shared(StopSources s) : sources(s) {}
  void Tell(Event event) {
    std::function<void()> woken;
    {
      MutexLock lock(mutex);
      ended.push_back(std::move(event));
      woken.swap(wake);
    }
    // Who is woken within the lock waits once more.
    if (woken) return woken();
    changed.NotifyOne();
  }

  std::deque<Event> ended ABSL_GUARDED_BY(mutex);
  std::function<void()> wake ABSL_GUARDED_BY(mutex);  // who does not wait
  CancellationToken token;
  const StopSources sources;
  timeline::OfThisThread* const told = timeline::OfThisThread::Current();
  const int processor = ThisProcessor();
};

WaitingSteps::WaitingSteps(StopSources sources)
    : shared_(std::make_shared<Shared>(sources)),
      most_busy_(InterOpScope::Threads()) {}

WaitingSteps::~WaitingSteps() {
  Cancel();
  while (any()) Next();
}

void WaitingSteps::Run(Job job) {
  ++under_way_;
  busy_ += job.busy;
  const auto run = [shared = shared_, job]() mutable {
    const AdoptedStops adopted(shared->sources);
    const timeline::OfThisThread::Joined told(shared->told);
    const StopScope own(&shared->token);
    const ProcessorScope placed(shared->processor);
    Status s = Guarded("a step", job.work);
    job.work = nullptr;
    shared->Tell({std::move(job), std::move(s)});
  };
  // Without a thread the run's own does the work.
  if (!RunOnOwnThread(run).ok()) {
    auto here = run;
    here();
  }
}

void WaitingSteps::Start(int key, bool busy, std::function<Status()> work) {
  Job job{key, busy, std::move(work)};
  if (cancelled_ || (busy && busy_ >= most_busy_)) {
    later_.push_back(std::move(job));
  } else {
    Run(std::move(job));
  }
}

void WaitingSteps::Await(
    int key, absl::FunctionRef<void(std::function<void()> ready)> begin) {
  awaited_.insert(key);
  if (cancelled_) return;
  begin([shared = shared_, key] {
    shared->Tell({{.key = key}, OkStatus(), true});
  });
}

std::optional<WaitingSteps::Ended> WaitingSteps::Take() {
  const auto stopped = [](int key) {
    return Ended{key, Cancelled("a step was to begin when its run ended")};
  };
  if (cancelled_ && !later_.empty()) {
    const int key = later_.front().key;
    later_.pop_front();
    return stopped(key);
  }
  if (cancelled_ && !awaited_.empty()) {
    return stopped(awaited_.extract(awaited_.begin()).value());
  }
  Shared::Event ended;
  do {
    MutexLock lock(shared_->mutex);
    if (shared_->ended.empty()) return std::nullopt;
    ended = std::move(shared_->ended.front());
    shared_->ended.pop_front();
    // What was ended since is no more to be tried.
  } while (ended.again && !awaited_.erase(ended.job.key));
  if (ended.again) return Ended{ended.job.key, {}, true};
  --under_way_;
  busy_ -= ended.job.busy;
  if (!cancelled_ && ended.job.busy && !later_.empty()) {
    Job next = std::move(later_.front());
    later_.pop_front();
    Run(std::move(next));
  }
  return Ended{ended.job.key, std::move(ended.status)};
}

void WaitingSteps::LookForStop() {
  if (cancelled_) return;
  if (Status s = CheckStop(); !s.ok()) {
    stop_ = std::move(s);
    Cancel();
  }
}

WaitingSteps::Ended WaitingSteps::Next() {
  while (true) {
    if (auto ended = Take()) return *std::move(ended);
    {
      MutexLock lock(shared_->mutex);
      if (!shared_->ended.empty()) continue;
      shared_->changed.WaitFor(shared_->mutex, kLooksForStop);
      if (!shared_->ended.empty()) continue;
    }
    LookForStop();
  }
}

std::optional<WaitingSteps::Ended> WaitingSteps::Poll(
    const std::function<void()>& wake) {
  while (true) {
    if (auto ended = Take()) return ended;
    const bool was_cancelled = cancelled_;
    LookForStop();
    if (cancelled_ && !was_cancelled) continue;
    MutexLock lock(shared_->mutex);
    if (!shared_->ended.empty()) continue;
    shared_->wake = wake;
    return std::nullopt;
  }
}

void WaitingSteps::Poke() const {
  // No step has this key.
  shared_->Tell({{.key = -1}, OkStatus(), true});
}

void WaitingSteps::Cancel() {
  cancelled_ = true;
  shared_->token.Cancel();
}

}  // namespace headrace
