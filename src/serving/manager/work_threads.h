// Threads that run jobs when they are due.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace headrace::serving {

using Clock = std::chrono::steady_clock;

enum class Priority { kNormal, kLowest };

// Makes the calling thread one that runs where no other has anything to do, as
// far as the system lets it: it and what it reads from disks are served
// last.
void LowerOwnPriority();

// Thread-safe.
class WorkThreads {
 public:
  struct Job {
    Clock::time_point due;
    int64_t number = 0;         // in order of arrival
    std::function<void()> run;  // must not throw
    bool operator<(const Job& other) const {
      return due != other.due ? due < other.due : number < other.number;
    }
  };

  // Parallel loops that jobs of the lowest priority start stay on their thread.
  // ResourceExhausted where the system gives no thread; fewer than `count` are
  // no error.
  static StatusOr<std::unique_ptr<WorkThreads>> Start(int count,
                                                      Priority priority);
  ~WorkThreads() { Stop(); }

  // A job that nobody would run any more is dropped.
  void Add(std::function<void()> run, Clock::time_point due = {});
  // Returns when no job runs any more: the jobs that were not begun. Not to be
  // called by a job.
  std::set<Job> Stop();

 private:
  void Work(Priority priority);
  // The next job; one without function when there will be none.
  Job Next();

  Mutex mutex_;
  CondVar changed_;
  std::set<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex threads_mutex_;  // held while threads end
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(threads_mutex_);
};

}  // namespace headrace::serving
