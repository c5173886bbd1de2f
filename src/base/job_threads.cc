#include "base/job_threads.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "base/fork_mutex.h"
#include "base/guard.h"
#include "base/mutex.h"
#include "base/sandbox.h"
#include "base/threads.h"

namespace headrace {
namespace {

// How long a thread stays without a job: longer than most programs take from
// one run of a plan to the next.
constexpr std::chrono::milliseconds kStays{2000};

// A thread and the job that it is to take.
struct Worker {
  CondVar changed;
  std::function<void()> job;
};

struct Workers {
  Mutex mutex;
  std::vector<Worker*> idle ABSL_GUARDED_BY(mutex);
};

// Those of this process: a forked child, which has none of its parent's
// threads, gets new ones. Never destroyed, as threads outlive main().
Workers& TheWorkers() {
  static ProcessMutex* const making = new ProcessMutex;
  static std::atomic<Workers*> workers{nullptr};
  static std::atomic<pid_t> owner{0};
  const pid_t me = getpid();
  if (owner.load(std::memory_order_acquire) == me) return *workers.load();
  MutexLock lock(*making);
  if (owner.load() != me) {
    workers.store(new Workers);
    owner.store(me, std::memory_order_release);
  }
  return *workers.load();
}

// Whether there is a job again; else the worker is out of the list.
bool AwaitJob(Workers& all, Worker& me) {
  MutexLock lock(all.mutex);
  all.idle.push_back(&me);
  const auto end = std::chrono::steady_clock::now() + kStays;
  while (!me.job) {
    if (std::chrono::steady_clock::now() >= end) {
      std::erase(all.idle, &me);
      return false;
    }
    me.changed.WaitFor(all.mutex, kStays);
  }
  return true;
}

void Work(Workers& all, std::function<void()> first) {
  Worker me;
  me.job = std::move(first);
  bool more = true;
  while (more) {
    std::exchange(me.job, nullptr)();
    more = false;
    // Without room in the list of idle threads this one ends.
    Guarded("waiting for a job", [&] {
      more = AwaitJob(all, me);
      return OkStatus();
    }).IgnoreError();
  }
}

}  // namespace

Status RunOnOwnThread(std::function<void()> job) {
  // A thread serves jobs of several sandboxes: the job brings its own along.
  if (InSandbox()) [[unlikely]]
    job = [inside = CarriedSandboxes(), job] { inside.Run(job); };
  Workers& all = TheWorkers();
  {
    MutexLock lock(all.mutex);
    if (!all.idle.empty()) {
      // The last one to become idle: its caches are the warmest, and those that
      // are not needed end.
      Worker* worker = all.idle.back();
      all.idle.pop_back();
      worker->job = std::move(job);
      worker->changed.NotifyOne();
      return OkStatus();
    }
  }
  const AdoptedSandbox outside;
  HR_ASSIGN_OR_RETURN(
      std::thread thread,
      StartThread([&all, job = std::move(job)] { Work(all, job); }));
  thread.detach();
  return OkStatus();
}

}  // namespace headrace
