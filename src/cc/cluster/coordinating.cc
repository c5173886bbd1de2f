#include "cc/cluster/coordinating.h"

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
      const auto taken = queue_.Take();
      if (!taken) return;
      if (!RunOne(*taken, &life)) break;
    }
    servers_->tasks().Leave(worker);
  }
}

bool Coordinating::Join(WorkersLife* life) {
  *life = {.worker = life->worker};
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

bool Coordinating::RunOne(const Taken& taken, WorkersLife* life) {
  auto& call = static_cast<ScheduledCall&>(*taken.call);
  Status s;
  {
    const StopScope stop(taken.token.get());
    s = taken.token->cancelled() ? taken.token->status() : call.Run(life);
  }
  if (s.ok()) {
    queue_.Finished(taken);
    return true;
  }
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
    queue_.PutBack(taken);
    return false;
  }
  if (SaysLost(s) && call.CountFalseLoss() <= kMostFalseLosses) {
    queue_.PutBack(taken);
    return true;
  }
  queue_.Failed(taken, s);
  return true;
}

}  // namespace headrace::tf::internal
