#include "serving/manager/work_threads.h"

#ifdef __linux__
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <optional>

#include "base/thread_pool.h"
#include "base/threads.h"

namespace headrace::serving {
namespace {

// A wait is cut into pieces of it, as a condition variable takes milliseconds.
constexpr std::chrono::milliseconds kLongestWait{1000};

#ifdef __linux__
// Of include/linux/ioprio.h, which no library's header names: this thread, the
// class that is served when the disk is idle.
constexpr int kIoOfProcess = 1, kIdleIo = 3 << 13;
#endif

}  // namespace

void LowerOwnPriority() {
#ifdef __linux__
  // Linux keeps both by thread. The policy stays the ordinary one: a thread of
  // SCHED_IDLE would not finish a load at all on a machine that is fully used.
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  (void)setpriority(PRIO_PROCESS, thread, 19);
  (void)syscall(SYS_ioprio_set, kIoOfProcess, 0, kIdleIo);
#endif
}

StatusOr<std::unique_ptr<WorkThreads>> WorkThreads::Start(int count,
                                                          Priority priority) {
  auto made = std::make_unique<WorkThreads>();
  MutexLock lock(made->threads_mutex_);
  for (int i = 0; i < std::max(count, 1); ++i) {
    auto thread =
        StartThread([work = made.get(), priority] { work->Work(priority); });
    if (thread.ok()) {
      made->threads_.push_back(*std::move(thread));
    } else if (i == 0) {
      return thread.status();
    }
  }
  return made;
}

void WorkThreads::Add(std::function<void()> run, Clock::time_point due) {
  MutexLock lock(mutex_);
  if (stopping_) return;
  jobs_.insert({due, count_++, std::move(run)});
  changed_.NotifyAll();
}

std::set<WorkThreads::Job> WorkThreads::Stop() {
  std::set<Job> left;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    left.swap(jobs_);
    changed_.NotifyAll();
  }
  MutexLock lock(threads_mutex_);
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  return left;
}

WorkThreads::Job WorkThreads::Next() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (jobs_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    const auto wait = jobs_.begin()->due - Clock::now();
    if (wait <= Clock::duration::zero()) {
      return std::move(jobs_.extract(jobs_.begin()).value());
    }
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(wait);
    changed_.WaitFor(mutex_, std::min(rounded, kLongestWait));
  }
  return {};
}

void WorkThreads::Work(Priority priority) {
  std::optional<ScopedThreadLimit> alone;
  if (priority == Priority::kLowest) {
    LowerOwnPriority();
    alone.emplace(1);
  }
  while (true) {
    const Job job = Next();
    if (!job.run) return;
    job.run();
  }
}

}  // namespace headrace::serving
