#include "cc/cluster/coordinating.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/cancellation.h"
#include "base/threads.h"
#include "cc/compose.h"

namespace headrace::tf::internal {
namespace {

using headrace::distributed::Clock;
using headrace::distributed::Coordinated;

// Between two questions whether a worker has come back.
constexpr std::chrono::milliseconds kPause{200};
// After which a worker is given up, as in TensorFlow.
constexpr std::chrono::hours kMostAway{1};
// Runs of one function that say that a task was lost, where all are there:
// connections break at times, but not so often in a row.
constexpr int kMostFalseLosses = 3;
// What calls that go together take in all, at most: their results may come that
// much later, and a call to a worker costs some tenths of a millisecond.
constexpr std::chrono::milliseconds kMostTogether{10};
// After which the calls of which nothing comes, and that are not begun, may go
// elsewhere: one of those before them takes long, or waits for one of them.
constexpr std::chrono::milliseconds kMostSilent{5};

ScheduledCall& CallOf(const headrace::distributed::CallQueue::Taken& taken) {
  return static_cast<ScheduledCall&>(*taken.call);
}

bool SaysLost(const Status& s) {
  return absl::IsUnavailable(s) || absl::IsAborted(s);
}

}  // namespace

Coordinating::Coordinating(std::shared_ptr<Servers> servers)
    : servers_(std::move(servers)), left_(servers_->tasks().num_workers()) {
  for (int w = 0; w < servers_->tasks().num_workers(); ++w) {
    auto thread = threads::Start([this, w] { Work(w); });
    if (!thread.ok()) {
      ending_.Cancel();
      queue_.Stop(thread.status());
      for (std::thread& t : threads_) t.join();
      Check(thread.status());
    }
    threads_.push_back(*std::move(thread));
  }
}

Coordinating::~Coordinating() {
  ending_.Cancel();
  queue_.Stop(Cancelled("the ClusterCoordinator is gone"));
  for (std::thread& t : threads_) t.join();
}

void Coordinating::Work(int worker) {
  const StopScope ending(&ending_);
  WorkersLife life;
  life.worker = worker;
  while (Join(&life)) {
    while (true) {
      std::vector<Taken> taken = TakeFor(life);
      if (taken.empty()) return;
      // One of short calls goes as several do, in fewer messages.
      const bool is_short =
          life.goes_together && CallOf(taken[0]).Took(life) <= kMostTogether;
      const bool goes_on = is_short ? RunShort(std::move(taken), &life)
                                    : RunOne(taken[0], &life);
      if (!goes_on) break;
    }
    servers_->tasks().Leave(worker);
  }
}

bool Coordinating::Join(WorkersLife* life) {
  *life = {.worker = life->worker, .tasks = &servers_->tasks()};
  const auto until = Clock::now() + kMostAway;
  while (!queue_.stopped()) {
    auto place = servers_->tasks().Join(life->worker);
    if (place.ok()) {
      life->place = *std::move(place);
      life->number = ++lives_;
      return true;
    }
    if (Clock::now() >= until) {
      GiveUp(life->worker);
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

void Coordinating::GiveUp(int worker) {
  if (--left_ > 0) return;
  queue_.Stop(Unavailable("all workers are given up, ",
                          servers_->tasks().WorkerName(worker),
                          " as the last one"));
}

std::vector<Coordinating::Taken> Coordinating::TakeFor(
    const WorkersLife& life) {
  std::chrono::nanoseconds all{};  // that those take which go together
  return queue_.Take([&](const auto& taken, const Taken& next, size_t waiting) {
    const size_t share =
        (taken.size() + waiting) / servers_->tasks().num_workers();
    if (!life.goes_together || taken.size() >= share ||
        taken[0].token != next.token) {
      return false;
    }
    if (taken.size() == 1) all = CallOf(taken[0]).Took(life);
    all += CallOf(next).Took(life);
    return all <= kMostTogether;
  });
}

bool Coordinating::RunOne(const Taken& taken, WorkersLife* life) {
  Status s;
  {
    const StopScope stop(taken.token.get());
    s = taken.token->cancelled() ? taken.token->status()
                                 : CallOf(taken).Run(life);
  }
  if (!s.ok()) return EndedBy(s, taken, life);
  queue_.Finished(taken);
  return true;
}

bool Coordinating::RunShort(std::vector<Taken> taken, WorkersLife* life) {
  const Taken first = taken[0];
  std::optional<StopScope> stop(first.token.get());
  size_t next = 0;  // the first one that has not ended
  // Those from there on go back to the queue.
  const auto give_back = [&](size_t from) {
    queue_.PutBack({taken.begin() + from, taken.end()});
    taken.resize(from);
  };
  const auto failed = [&](const Status& s) {
    give_back(next + 1);
    stop.reset();
    return EndedBy(s, taken[next], life);
  };
  std::vector<headrace::distributed::FunctionCall> calls;
  for (const Taken& t : taken) {
    calls.emplace_back();
    const Status s = CallOf(t).Prepare(life, &calls.back());
    if (s.ok()) continue;
    if (calls.size() == 1) return failed(s);
    // It is told of when it is the first.
    calls.pop_back();
    give_back(calls.size());
    break;
  }
  const Clock::time_point began = Clock::now();
  const auto started =
      headrace::distributed::CallTogether(life->place, calls, kMostTogether);
  if (!started.ok()) return failed(started.status());
  const auto& together = *started;
  if (together == nullptr) {
    give_back(1);
    return RunOne(taken[0], life);
  }
  bool asked_back = false, over = false;
  while (!over && next < taken.size()) {
    const auto ended = together->Wait(kMostSilent);
    if (!ended.ok()) return failed(ended.status());
    const auto results = together->Take();
    if (!results.ok()) return failed(results.status());
    for (const auto& result : *results) {
      // (Others were given back, whatever the worker says.)
      if (next == taken.size()) break;
      if (!result.status.ok()) return failed(result.status);
      CallOf(taken[next]).Give(result.fetched);
      queue_.Finished(taken[next++]);
    }
    over = *ended;
    const bool waits = !over && !asked_back && taken.size() - next > 1;
    if (!waits || !results->empty()) continue;
    const auto begun = together->GiveBack();
    if (!begun.ok()) return failed(begun.status());
    // (None: all have ended.)
    asked_back = begun->has_value();
    if (asked_back && **begun >= next)
      give_back(std::min(**begun, taken.size()));
  }
  if (asked_back) {
    // It goes alone, next, to be seen whether it is the slow one.
    CallOf(first).SetTook(kUnknownTime, life);
  } else {
    for (size_t i = 0; i < next; ++i) {
      CallOf(taken[i]).SetTook((Clock::now() - began) / next, life);
    }
  }
  if (next == taken.size()) return true;
  const Status s = together->end();
  if (s.ok()) {  // the others were not begun
    give_back(next);
    return true;
  }
  if (next == 0 && absl::IsUnimplemented(s)) {
    life->goes_together = false;
    give_back(0);
    return true;
  }
  return failed(s);
}

bool Coordinating::EndedBy(const Status& s, const Taken& taken,
                           WorkersLife* life) {
  if (taken.token->cancelled()) {
    queue_.Failed(taken, s);
    return true;
  }
  Coordinated& tasks = servers_->tasks();
  if (SaysLost(s)) {
    if (const Status server = tasks.CheckServers(); !server.ok()) {
      queue_.Failed(taken, server);
      return true;
    }
  }
  if (!tasks.CheckWorker(life->worker).ok()) {
    queue_.PutBack({taken});
    return false;
  }
  if (SaysLost(s) && CallOf(taken).CountFalseLoss() <= kMostFalseLosses) {
    queue_.PutBack({taken});
    return true;
  }
  queue_.Failed(taken, s);
  return true;
}

}  // namespace headrace::tf::internal
