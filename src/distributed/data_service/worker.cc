#include "distributed/data_service/worker.h"

#include <random>

#include "base/job_threads.h"
#include "data/transform/shard.h"
#include "distributed/data_service/ask.h"
#include "distributed/data_service/methods.h"
#include "distributed/data_service/splits.h"

namespace headrace::distributed::data_service {
namespace {

// Before a dispatcher that did not answer is asked again.
constexpr std::chrono::milliseconds kHeartbeatBackOff{200};
// DataServiceMetadata's numbers from which on elements are packed.
constexpr int kSnappy = 2;

uint64_t RandomLife() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// The workers of this process.
struct Known {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<DataWorker>> workers
      ABSL_GUARDED_BY(mutex);
};
Known& TheKnown() {
  static Known* const known = new Known;
  return *known;
}

// While a dispatcher is started anew. A number that it gave away and that did
// not come is gone.
Status AskForLong(Channels& channels, const std::string& dispatcher,
                  const GetSplitRequest& request, GetSplitResponse* response) {
  CallOptions options;
  options.wait_for_ready = true;
  const Clock::time_point begun = Clock::now();
  while (true) {
    const Status s =
        Ask(channels, dispatcher, kGetSplit, request, response, options);
    const bool away = absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
    if (!away || Clock::now() - begun > kGathering) return s;
    HR_RETURN_IF_ERROR(CheckStop());
  }
}

StatusOr<DatasetPtr> OwnPart(DatasetPtr dataset, int policy,
                             const ServiceTask& task) {
  const auto part = [&](AutoShard how) {
    return AutoShardOf(std::move(dataset), task.num_workers(),
                       task.worker_index(), how);
  };
  if (policy == kFile) return part(AutoShard::kFile);
  if (policy == kData) return part(AutoShard::kData);
  if (policy == kFileOrData) return part(AutoShard::kAuto);
  return dataset;
}

}  // namespace

DataWorker::DataWorker(WorkerOptions options,
                       std::shared_ptr<Channels> channels)
    : options_(std::move(options)),
      channels_(std::move(channels)),
      life_(RandomLife()) {}

std::shared_ptr<DataWorker> DataWorker::Find(const std::string& address) {
  MutexLock lock(TheKnown().mutex);
  const auto at = TheKnown().workers.find(address);
  return at == TheKnown().workers.end() ? nullptr : at->second.lock();
}

Status DataWorker::Start() {
  CallOptions options;
  options.wait_for_ready = true;
  options.deadline = Clock::now() + options_.dispatcher_timeout;
  {
    MutexLock lock(TheKnown().mutex);
    TheKnown().workers[options_.address] = weak_from_this();
  }
  HR_RETURN_IF_ERROR(Heartbeat({}, options));
  return RunOnOwnThread([self = shared_from_this()] { self->Beat(); });
}

void DataWorker::Beat() {
  const StopScope scope(&token_);
  while (!token_.cancelled()) {
    const Status s = Heartbeat(options_.heartbeat, {});
    if (s.ok()) continue;
    MutexLock lock(mutex_);
    if (!stopped_) changed_.WaitFor(mutex_, kHeartbeatBackOff);
  }
}

Status DataWorker::Heartbeat(std::chrono::milliseconds wait,
                             const CallOptions& options) {
  WorkerHeartbeatRequest request;
  request.set_address(options_.address);
  request.set_life(life_);
  request.set_wait_ms(wait.count());
  {
    MutexLock lock(mutex_);
    for (const auto& [id, task] : tasks_) request.add_tasks(id);
  }
  WorkerHeartbeatResponse response;
  HR_RETURN_IF_ERROR(Ask(*channels_, options_.dispatcher, kWorkerHeartbeat,
                         request, &response, options));
  std::map<int64_t, const ServiceIteration*> iterations;
  for (const auto& i : response.iterations()) iterations[i.id()] = &i;
  for (const ServiceTask& task : response.new_tasks()) {
    const auto at = iterations.find(task.iteration_id());
    if (at == iterations.end()) {
      return Internal("a task of no iteration from ", options_.dispatcher);
    }
    HR_RETURN_IF_ERROR(Add(task, *at->second));
  }
  for (const int64_t id : response.ended_tasks()) {
    std::shared_ptr<WorkerTask> ended;
    MutexLock lock(mutex_);
    const auto at = tasks_.find(id);
    if (at == tasks_.end()) continue;
    ended = std::move(at->second);
    tasks_.erase(at);
    ended->Stop();
  }
  return OkStatus();
}

Status DataWorker::Add(const ServiceTask& task,
                       const ServiceIteration& iteration) {
  GetDatasetRequest request;
  request.set_id(iteration.dataset_id());
  GetDatasetResponse response;
  HR_RETURN_IF_ERROR(
      Ask(*channels_, options_.dispatcher, kGetDataset, request, &response));
  TaskWork work;
  work.task = task;
  work.iteration = iteration;
  work.by_snappy = response.dataset().compression() >= kSnappy;
  const auto made = [&]() -> StatusOr<DatasetPtr> {
    HR_ASSIGN_OR_RETURN(
        DatasetPtr whole,
        DatasetOfGraph(response.dataset().graph(),
                       iteration.policy() == kHint
                           ? FileShard{task.num_workers(), task.worker_index()}
                           : FileShard{}));
    return OwnPart(std::move(whole), iteration.policy(), task);
  }();
  // What is wrong with a dataset is said to who reads it.
  work.broken = made.status();
  if (made.ok()) work.dataset = *made;
  const auto weak = weak_from_this();
  if (made.ok() && iteration.policy() == kDynamic) {
    work.shares = SharesOf(
        *work.dataset,
        [channels = channels_, dispatcher = options_.dispatcher,
         id = iteration.id()](int source, int64_t repetition, bool past_end,
                              int64_t* index, bool* end) {
          GetSplitRequest ask;
          ask.set_iteration_id(id);
          ask.set_source(source);
          ask.set_repetition(repetition);
          ask.set_past_end(past_end);
          GetSplitResponse split;
          HR_RETURN_IF_ERROR(AskForLong(*channels, dispatcher, ask, &split));
          *index = split.index();
          *end = split.end();
          return OkStatus();
        });
  }
  work.on_end = [weak, id = task.id()] {
    if (const auto self = weak.lock()) self->TellEnd(id);
  };
  MutexLock lock(mutex_);
  if (!stopped_) tasks_[task.id()] = std::make_shared<WorkerTask>(work);
  return OkStatus();
}

// Without waiting. Lost: the next request for the task tells it again.
void DataWorker::TellEnd(int64_t task_id) {
  TaskEndedRequest request;
  request.set_task_id(task_id);
  CallOptions options;
  options.wait_for_ready = true;
  channels_->Start(options_.dispatcher, kTaskEnded, WriteMessage(request),
                   options, [](const Answer&) {});
}

Status DataWorker::Take(const GetElementsRequest& request, Bytes* answer) {
  std::shared_ptr<WorkerTask> task;
  {
    MutexLock lock(mutex_);
    const auto at = tasks_.find(request.task_id());
    if (stopped_ || at == tasks_.end()) {
      return NotFound("the worker ", options_.address, " has no task ",
                      request.task_id());
    }
    task = at->second;
  }
  return task->Take(request, answer);
}

int DataWorker::num_tasks() {
  MutexLock lock(mutex_);
  return static_cast<int>(tasks_.size());
}

void DataWorker::Stop() {
  token_.Cancel();
  {
    MutexLock lock(TheKnown().mutex);
    const auto at = TheKnown().workers.find(options_.address);
    if (at != TheKnown().workers.end() && at->second.lock().get() == this) {
      TheKnown().workers.erase(at);
    }
  }
  std::map<int64_t, std::shared_ptr<WorkerTask>> tasks;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    tasks.swap(tasks_);
    changed_.NotifyAll();
  }
  for (const auto& [id, task] : tasks) task->Stop();
}

}  // namespace headrace::distributed::data_service
