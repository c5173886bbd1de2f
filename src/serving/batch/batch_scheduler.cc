#include "serving/batch/batch_scheduler.h"

#include <algorithm>
#include <utility>

#include "base/guard.h"
#include "base/threads.h"
#include "base/timed_cond_var.h"
#include "serving/batch/batch_tensors.h"

namespace headrace::serving {
namespace {

using Clock = BatchTask::Clock;
using LanePtr = std::shared_ptr<BatchLane>;

// How often tasks that wait, or run beside others, are asked whether somebody
// still wants them: well within the 50 ms that a stop may take.
constexpr std::chrono::milliseconds kSweep(10);

void FinishStopped(std::vector<BatchTask>& stopped) {
  for (BatchTask& task : stopped) task.Finish(WaitStatus(task));
  stopped.clear();
}

}  // namespace

class BatchScheduler::Core
    : public std::enable_shared_from_this<BatchScheduler::Core> {
 public:
  Status Submit(const LanePtr& lane, BatchTask& task);
  void Close(const LanePtr& lane);
  void FailWaiting(const Status& status);
  int64_t waiting() const;

  // The bodies of the threads: run batches, and look for tasks that are not
  // wanted any more.
  void Work();
  void Sweep();
  void Stop();

 private:
  struct Taken {
    LanePtr lane;
    std::unique_ptr<Batch> batch;
  };

  // The next batch, in turn, that waits for nothing; else *until is when the
  // first one will.
  Taken Next(Clock::time_point* until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a batch; none when the scheduler ends.
  Taken WaitForBatch();
  void WaitForWork(Clock::time_point until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(Taken taken);
  // Of batches that several tasks wait for.
  void AddRunning(const std::shared_ptr<RunningBatch>& batch);
  void RemoveRunning(const std::shared_ptr<RunningBatch>& batch);
  bool NothingToSweep() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return lanes_.empty() && running_.empty();
  }
  void CollectStopped(std::vector<BatchTask>* stopped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropEmptyLanes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  TimedCondVar work_;
  CondVar sweep_;
  // Lanes whose queues are not empty; who was served goes to the end.
  std::vector<LanePtr> lanes_ ABSL_GUARDED_BY(mutex_);
  // Batches that several tasks wait for.
  std::vector<std::shared_ptr<RunningBatch>> running_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for work
  // When the first of them wakes by itself.
  Clock::time_point wakes_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  bool sweeper_sleeps_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

Status BatchScheduler::Core::Submit(const LanePtr& lane, BatchTask& task) {
  bool wake, wake_sweeper;
  {
    MutexLock lock(mutex_);
    lanes_.reserve(lanes_.size() + 1);
    HR_RETURN_IF_ERROR(lane->queue.Add(task));
    if (!lane->listed) lanes_.push_back(lane);
    lane->listed = true;
    lane->TellDepth();
    const Clock::time_point ready = lane->queue.ReadyAt();
    const bool at_once = ready == Clock::time_point::min();
    wake = idle_ > 0 && (at_once || ready < wakes_);
    // A task that a thread takes at once needs nobody to look after it.
    wake_sweeper = sweeper_sleeps_ && !(at_once && idle_ > 0);
  }
  if (wake) work_.NotifyOne();
  if (wake_sweeper) sweep_.NotifyOne();
  return OkStatus();
}

void BatchScheduler::Core::Close(const LanePtr& lane) {
  {
    MutexLock lock(mutex_);
    lane->queue.Close();
    if (lane->queue.empty()) return;
  }
  work_.NotifyOne();
}

void BatchScheduler::Core::DropEmptyLanes() {
  std::erase_if(lanes_, [](const LanePtr& lane) {
    lane->TellDepth();
    lane->listed = !lane->queue.empty();
    return !lane->listed;
  });
}

void BatchScheduler::Core::FailWaiting(const Status& status) {
  std::vector<BatchTask> removed;
  std::vector<LanePtr> lanes;  // which may go with the last task
  {
    MutexLock lock(mutex_);
    lanes = lanes_;
    for (const LanePtr& lane : lanes_) lane->queue.RemoveAll(&removed);
    DropEmptyLanes();
  }
  for (BatchTask& task : removed) task.Finish(status);
}

int64_t BatchScheduler::Core::waiting() const {
  MutexLock lock(mutex_);
  int64_t sum = 0;
  for (const LanePtr& lane : lanes_) sum += lane->queue.waiting();
  return sum;
}

BatchScheduler::Core::Taken BatchScheduler::Core::Next(
    Clock::time_point* until) {
  *until = Clock::time_point::max();
  if (lanes_.empty()) return {};
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    BatchLane& lane = *lanes_[i];
    std::unique_ptr<Batch> batch = lane.queue.Take(now);
    if (batch == nullptr) {
      *until = std::min(*until, lane.queue.ReadyAt());
      continue;
    }
    lane.TellDepth();
    std::rotate(lanes_.begin() + i, lanes_.begin() + i + 1, lanes_.end());
    LanePtr taken = lanes_.back();
    if (lane.queue.empty()) {
      lane.listed = false;
      lanes_.pop_back();
    }
    return {std::move(taken), std::move(batch)};
  }
  return {};
}

void BatchScheduler::Core::WaitForWork(Clock::time_point until) {
  ++idle_;
  // One thread at least wakes at the earliest time; others need not.
  if (until < wakes_) {
    wakes_ = until;
    work_.WaitUntil(mutex_, until);
    wakes_ = Clock::time_point::max();
  } else {
    work_.Wait(mutex_);
  }
  --idle_;
}

BatchScheduler::Core::Taken BatchScheduler::Core::WaitForBatch() {
  Taken taken;
  bool more;
  {
    MutexLock lock(mutex_);
    for (;;) {
      Clock::time_point until;
      taken = Next(&until);
      if (taken.batch != nullptr) break;
      if (stopping_ && lanes_.empty()) return {};
      WaitForWork(until);
    }
    more = idle_ > 0 && !lanes_.empty();
  }
  if (more) work_.NotifyOne();
  return taken;
}

void BatchScheduler::Core::Work() {
  for (;;) {
    Taken taken = WaitForBatch();
    if (taken.batch == nullptr) return;
    Run(std::move(taken));
  }
}

void BatchScheduler::Core::Run(Taken taken) {
  Batch& batch = *taken.batch;
  DropStopped(batch);
  if (batch.tasks.empty()) return;
  const int64_t size = ExecutionSize(taken.lane->options, batch.rows);
  std::shared_ptr<RunningBatch> running;
  const Status s = Guarded("a batch", [&] {
    HR_ASSIGN_OR_RETURN(Tensors inputs,
                        JoinInputs(absl::MakeSpan(batch.tasks), size));
    taken.lane->metrics.BatchRuns(batch, size);
    const bool together = batch.tasks.size() > 1;
    CallPtr call = CallFor(batch);
    running =
        std::make_shared<RunningBatch>(std::move(taken.batch), std::move(call));
    if (together) AddRunning(running);
    taken.lane->runner->Run(running->call(), std::move(inputs),
                            [self = shared_from_this(), running, size,
                             together](StatusOr<Tensors> outputs) {
                              if (together) self->RemoveRunning(running);
                              running->Finish(std::move(outputs), size);
                            });
    return OkStatus();
  });
  if (s.ok()) return;
  if (running == nullptr) return FinishTasks(std::move(batch.tasks), s, size);
  RemoveRunning(running);
  running->Finish(s, size);
}

void BatchScheduler::Core::AddRunning(
    const std::shared_ptr<RunningBatch>& batch) {
  bool wake;
  {
    MutexLock lock(mutex_);
    running_.push_back(batch);
    wake = sweeper_sleeps_;
  }
  if (wake) sweep_.NotifyOne();
}

void BatchScheduler::Core::RemoveRunning(
    const std::shared_ptr<RunningBatch>& batch) {
  MutexLock lock(mutex_);
  std::erase(running_, batch);
}

void BatchScheduler::Core::CollectStopped(std::vector<BatchTask>* stopped) {
  for (const LanePtr& lane : lanes_) lane->queue.RemoveStopped(stopped);
  for (const auto& batch : running_) batch->RemoveStopped(stopped);
}

void BatchScheduler::Core::Sweep() {
  std::vector<BatchTask> stopped;
  std::vector<LanePtr> lanes;  // which may go with the last task
  MutexLock lock(mutex_);
  while (!(stopping_ && NothingToSweep())) {
    if (NothingToSweep()) {
      sweeper_sleeps_ = true;
      sweep_.Wait(mutex_);
      sweeper_sleeps_ = false;
      continue;
    }
    sweep_.WaitFor(mutex_, kSweep);
    // Where memory ends, the next turn tries again.
    Guarded("batches", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      lanes = lanes_;
      CollectStopped(&stopped);
      return OkStatus();
    }).IgnoreError();
    DropEmptyLanes();
    MutexUnlock unlock(mutex_);
    FinishStopped(stopped);
    lanes.clear();
  }
}

void BatchScheduler::Core::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    for (const LanePtr& lane : lanes_) lane->queue.Close();
  }
  work_.NotifyAll();
  sweep_.NotifyAll();
}

StatusOr<std::shared_ptr<BatchScheduler>> BatchScheduler::Start(
    const BatchingOptions& options) {
  auto core = std::make_shared<Core>();
  BatchSchedulerPtr made(new BatchScheduler(core, options.thread_pool_name));
  HR_ASSIGN_OR_RETURN(std::thread sweeper,
                      StartThread([core] { core->Sweep(); }));
  made->threads_.push_back(std::move(sweeper));
  for (int64_t i = 0; i < options.num_batch_threads; ++i) {
    auto thread = StartThread([core] { core->Work(); });
    // Fewer threads than were asked for still run all batches.
    if (!thread.ok() && i > 0) break;
    HR_RETURN_IF_ERROR(thread.status());
    made->threads_.push_back(*std::move(thread));
  }
  return made;
}

BatchScheduler::~BatchScheduler() {
  core_->Stop();
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

Status BatchScheduler::Submit(const std::shared_ptr<BatchLane>& lane,
                              BatchTask& task) {
  return core_->Submit(lane, task);
}
void BatchScheduler::Close(const std::shared_ptr<BatchLane>& lane) {
  core_->Close(lane);
}
void BatchScheduler::FailWaiting(const Status& status) {
  core_->FailWaiting(status);
}
int64_t BatchScheduler::waiting() const { return core_->waiting(); }

}  // namespace headrace::serving
