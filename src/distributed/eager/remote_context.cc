#include "distributed/eager/remote_context.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"
#include "distributed/eager/device_place.h"
#include "distributed/handshake.h"
#include "distributed/messages.h"
#include "distributed/request_ids.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {

using namespace tensorflow::eager;  // NOLINT: the messages of the service

namespace {

// What closing may take: tasks may be gone.
constexpr std::chrono::seconds kCloseTime{2};

CallOptions Until(Clock::time_point deadline) {
  CallOptions options;
  options.deadline = deadline;
  return options;
}

CallOptions UntilSoon(Clock::time_point deadline, const RemoteMethod& method) {
  return Until(std::min(deadline, Clock::now() + method.deadline));
}

// The other tasks of the cluster; those of `known` that it has at the same
// address are these.
std::vector<std::shared_ptr<RemoteTask>> TasksOf(
    Cluster& cluster, const DeviceName& own,
    const std::vector<std::shared_ptr<RemoteTask>>& known) {
  std::vector<std::shared_ptr<RemoteTask>> tasks;
  for (const auto& [key, address] : cluster.tasks()) {
    const DeviceName name = DeviceName::OfTask(key.first, key.second);
    if (name.SameTask(own)) continue;
    const auto same = std::find_if(
        known.begin(), known.end(), [&, &at = address](const auto& task) {
          return task->name == name && task->address == at;
        });
    if (same != known.end()) {
      tasks.push_back(*same);
      continue;
    }
    tasks.push_back(std::make_shared<RemoteTask>());
    tasks.back()->name = name;
    tasks.back()->address = address;
    tasks.back()->channel = cluster.ChannelOf(name);
  }
  return tasks;
}

// Asks the tasks for their devices, which are called as the cluster calls the
// tasks.
Status Meet(const std::vector<std::shared_ptr<RemoteTask>>& tasks,
            Clock::time_point deadline) {
  CallOptions call = Until(deadline);
  call.wait_for_ready = true;
  Calls calls;
  for (const auto& task : tasks) {
    calls.Start(*task->channel, worker::kGetStatus.path,
                WriteMessage(tensorflow::GetStatusRequest()), call,
                [task](const Answer& answer) -> Status {
                  HR_RETURN_IF_ERROR(StatusOf(answer));
                  tensorflow::GetStatusResponse response;
                  HR_RETURN_IF_ERROR(ReadMessage(answer.body, &response));
                  for (const auto& d : response.device_attributes()) {
                    DeviceName name;
                    if (!DeviceName::Parse(d.name(), &name) || !name.full()) {
                      continue;
                    }
                    name.job = task->name.job;
                    name.replica = task->name.replica;
                    name.task = task->name.task;
                    task->devices.push_back(d);
                    task->devices.back().set_name(name.ToString());
                  }
                  return OkStatus();
                });
  }
  return calls.Wait();
}

// What contexts are made and changed by.
template <typename Request>
Request Described(const tensorflow::ServerDef& def,
                  const std::vector<std::shared_ptr<RemoteTask>>& tasks,
                  const RemoteTask& task, uint64_t id, uint64_t view) {
  Request request;
  *request.mutable_server_def() = def;
  request.mutable_server_def()->set_job_name(*task.name.job);
  request.mutable_server_def()->set_task_index(*task.name.task);
  request.set_context_id(id);
  request.set_context_view_id(view);
  for (const auto& other : tasks) {
    for (const auto& d : other->devices) {
      *request.add_cluster_device_attributes() = d;
    }
  }
  return request;
}

}  // namespace

StatusOr<std::shared_ptr<RemoteContext>> RemoteContext::Connect(
    const RemoteOptions& options, const Dial& dial) {
  std::shared_ptr<RemoteContext> made(new RemoteContext);
  made->id_ = static_cast<uint64_t>(NewStepId());
  made->own_ =
      DeviceName::OfTask(options.def.job_name(), options.def.task_index());
  HR_ASSIGN_OR_RETURN(const auto cluster, Cluster::Make(options.def, dial));
  const Tasks tasks = TasksOf(*cluster, made->own_, {});
  {
    MutexLock lock(made->mutex_);
    made->cluster_ = cluster;
    made->tasks_ = tasks;
  }
  HR_RETURN_IF_ERROR(Meet(tasks, options.deadline));
  HR_RETURN_IF_ERROR(made->MakeContexts(options, tasks, tasks, 0));
  HR_RETURN_IF_ERROR(made->MakeOwnSession(options));
  HR_RETURN_IF_ERROR(made->BeginKeepingAlive(options.keep_alive_secs));
  return made;
}

// By which parts of functions that run here meet those of other tasks.
Status RemoteContext::MakeOwnSession(const RemoteOptions& options) {
  library_ = options.library;
  if (options.worker) {
    tensorflow::CreateWorkerSessionRequest request;
    request.set_session_handle(session());
    *request.mutable_server_def() = options.def;
    HR_RETURN_IF_ERROR(
        options.worker->CreateSession(request, options.resources));
    worker_ = options.worker;
  }
  const auto place_of =
      [weak = weak_from_this()](
          const std::string& device) -> StatusOr<std::shared_ptr<RemotePlace>> {
    if (const auto self = weak.lock()) return self->PlaceOf(device);
    return FailedPrecondition("the connection to ", device, " has been closed");
  };
  calls_ = std::make_shared<SpreadCalls>(own_, worker_, options.no_worker,
                                         session(), library_, place_of);
  return OkStatus();
}

Status RemoteContext::MakeContexts(const RemoteOptions& options,
                                   const Tasks& tasks, const Tasks& made,
                                   uint64_t view) {
  Calls calls;
  for (const auto& task : made) {
    auto request =
        Described<CreateContextRequest>(options.def, tasks, *task, id_, view);
    request.set_keep_alive_secs(options.keep_alive_secs);
    request.mutable_version_def()->set_producer(kGraphVersion);
    request.set_lazy_copy_remote_function_inputs(true);
    request.set_clear_existing_contexts(options.clear_existing_contexts);
    calls.Start(*task->channel, eager_service::kCreateContext.path,
                WriteMessage(request),
                UntilSoon(options.deadline, eager_service::kCreateContext));
  }
  return calls.Wait();
}

Status RemoteContext::UpdateContexts(const RemoteOptions& options,
                                     const Tasks& tasks, const Tasks& kept,
                                     uint64_t view) {
  Calls calls;
  for (const auto& task : kept) {
    calls.Start(*task->channel, eager_service::kUpdateContext.path,
                WriteMessage(Described<UpdateContextRequest>(options.def, tasks,
                                                             *task, id_, view)),
                UntilSoon(options.deadline, eager_service::kUpdateContext));
  }
  return calls.Wait();
}

// Those that have their context; others may have been started anew.
RemoteContext::Tasks RemoteContext::StillThere(const Tasks& tasks) {
  KeepAliveRequest request;
  request.set_context_id(id_);
  std::vector<std::unique_ptr<Calls>> all;
  for (const auto& task : tasks) {
    all.push_back(std::make_unique<Calls>());
    all.back()->Start(
        *task->channel, eager_service::kKeepAlive.path, WriteMessage(request),
        UntilSoon(Clock::time_point::max(), eager_service::kKeepAlive));
  }
  Tasks there;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (all[i]->Wait().ok()) there.push_back(tasks[i]);
  }
  return there;
}

Status RemoteContext::Update(const RemoteOptions& options) {
  if (options.def.job_name() != own_.job ||
      options.def.task_index() != own_.task) {
    return InvalidArgument(
        "The context is of ", own_.ToString(),
        " and stays so; the cluster has "
        "it as ",
        DeviceName::OfTask(options.def.job_name(), options.def.task_index())
            .ToString());
  }
  MutexLock updating(updating_);
  std::shared_ptr<Cluster> cluster;
  Tasks before;
  {
    MutexLock lock(mutex_);
    if (closed_) return FailedPrecondition("the context has been closed");
    HR_ASSIGN_OR_RETURN(cluster, cluster_->With(options.def));
    before = tasks_;
  }
  const Tasks there = StillThere(before);
  const Tasks now = TasksOf(*cluster, own_, there);
  const auto in = [](const Tasks& tasks, const Task& task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  Tasks kept, added, removed;
  for (const Task& t : now) (in(there, t) ? kept : added).push_back(t);
  for (const Task& t : before) {
    if (!in(now, t)) removed.push_back(t);
  }
  HR_RETURN_IF_ERROR(Meet(added, options.deadline));
  const uint64_t view = view_ + 1;
  if (Status s = MakeContexts(options, now, added, view); !s.ok()) {
    CloseContexts(added);
    return s;
  }
  // Contexts that are kept take the number that follows theirs, and no other:
  // one that none of them was told is the next one again.
  view_ = view;
  if (Status s = UpdateContexts(options, now, kept, view); !s.ok()) {
    CloseContexts(added);
    return s;
  }
  if (worker_) {
    HR_RETURN_IF_ERROR(worker_->UpdateSession(session(), options.def));
  }
  {
    MutexLock lock(mutex_);
    cluster_ = cluster;
    tasks_ = now;
  }
  calls_->Clear();
  for (const Task& t : removed) t->gone = true;
  // (The context of one that was started anew is where that has its new one.)
  std::erase_if(removed, [&](const Task& t) {
    return std::any_of(now.begin(), now.end(),
                       [&](const Task& n) { return n->address == t->address; });
  });
  CloseContexts(removed);
  return BeginKeepingAlive(options.keep_alive_secs);
}

// The shortest time that was asked for holds for all.
Status RemoteContext::BeginKeepingAlive(int64_t seconds) {
  if (seconds <= 0) return OkStatus();
  const std::chrono::milliseconds every(seconds * 1000 / 3);
  MutexLock lock(mutex_);
  if (closed_) return OkStatus();
  const bool begun = keeper_.joinable();
  alive_every_ = begun ? std::min(alive_every_, every) : every;
  changed_.NotifyAll();
  if (begun) return OkStatus();
  HR_ASSIGN_OR_RETURN(keeper_, threads::Start([this] { KeepAlive(); }));
  return OkStatus();
}

void RemoteContext::KeepAlive() {
  KeepAliveRequest request;
  request.set_context_id(id_);
  while (true) {
    Tasks tasks;
    {
      MutexLock lock(mutex_);
      if (!closed_) changed_.WaitFor(mutex_, alive_every_);
      if (closed_) return;
      tasks = tasks_;
    }
    for (const auto& task : tasks) {
      // A task that is gone is told by the ops that need it.
      task->channel->Start(
          eager_service::kKeepAlive.path, WriteMessage(request),
          UntilSoon(Clock::time_point::max(), eager_service::kKeepAlive),
          [](const Answer&) {});
    }
  }
}

RemoteContext::~RemoteContext() { Close(); }

void RemoteContext::Close() {
  std::thread keeper;
  Tasks tasks;
  {
    MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    changed_.NotifyAll();
    keeper = std::move(keeper_);
    tasks = tasks_;
  }
  if (keeper.joinable()) keeper.join();
  if (calls_) calls_->Close();
  if (worker_) worker_->DeleteSession(session()).IgnoreError();
  CloseContexts(tasks);
}

Status RemoteContext::Knock(const std::string& address,
                            std::chrono::milliseconds time) {
  std::shared_ptr<Channel> channel;
  {
    MutexLock lock(mutex_);
    if (closed_) return FailedPrecondition("the context has been closed");
    channel = cluster_->ChannelTo(address);
  }
  Calls call;
  call.Start(*channel, worker::kGetStatus.path,
             WriteMessage(tensorflow::GetStatusRequest()),
             Until(Clock::now() + time));
  return call.Wait();
}

// Whether or not they answer.
void RemoteContext::CloseContexts(const Tasks& tasks) {
  CloseContextRequest request;
  request.set_context_id(id_);
  std::vector<std::unique_ptr<Calls>> all;
  for (const auto& task : tasks) {
    if (!task->channel) continue;
    all.push_back(std::make_unique<Calls>());
    all.back()->Start(*task->channel, eager_service::kCloseContext.path,
                      WriteMessage(request), Until(Clock::now() + kCloseTime));
  }
  for (const auto& calls : all) calls->Wait().IgnoreError();
}

RemoteContext::Tasks RemoteContext::tasks() const {
  MutexLock lock(mutex_);
  return tasks_;
}

std::vector<tensorflow::DeviceAttributes> RemoteContext::devices() const {
  std::vector<tensorflow::DeviceAttributes> all;
  for (const auto& task : tasks()) {
    all.insert(all.end(), task->devices.begin(), task->devices.end());
  }
  return all;
}

Status RemoteContext::CheckOpen(const RemoteTask& task,
                                const std::string& device) {
  if (task.gone) return InvalidArgument(device, " unknown device.");
  MutexLock lock(mutex_);
  if (!closed_) return OkStatus();
  return FailedPrecondition("the connection to ", device, " has been closed");
}

StatusOr<std::shared_ptr<RemotePlace>> RemoteContext::PlaceOf(
    const std::string& device) {
  DeviceName name;
  if (!DeviceName::Parse(device, &name)) {
    return InvalidArgument("Malformed device specification '", device, "'");
  }
  name = name.OrElse({own_.job, 0, 0, "CPU", 0});
  for (const auto& task : tasks()) {
    for (const auto& d : task->devices) {
      if (d.name() != name.ToString()) continue;
      return std::shared_ptr<RemotePlace>(std::make_shared<DevicePlace>(
          shared_from_this(), task, &d, library_));
    }
  }
  return std::shared_ptr<RemotePlace>(
      std::make_shared<NoPlace>(name.ToString()));
}

Status RemoteContext::RemoveFunction(const std::string& name) {
  calls_->Clear();
  EnqueueRequest request;
  request.set_context_id(id_);
  request.add_queue()->mutable_remove_function()->set_function_name(name);
  Calls calls;
  for (const auto& task : tasks()) {
    bool sure;
    {
      MutexLock lock(task->mutex);
      const auto it = task->functions.find(name);
      if (it == task->functions.end()) continue;
      sure = it->second;
      task->functions.erase(it);
    }
    calls.Start(*task->channel, eager_service::kEnqueue.path,
                WriteMessage(request), {}, [sure](const Answer& answer) {
                  const Status s = StatusOf(answer);
                  // It may never have come to the task.
                  return !sure && absl::IsInvalidArgument(s) ? OkStatus() : s;
                });
  }
  return calls.Wait();
}

Status RemoteContext::CheckAlive(const std::string& task_name) {
  DeviceName name;
  const bool is_task = DeviceName::Parse(task_name, &name) && name.job;
  name = name.OrElse(DeviceName::OfTask("", 0));
  if (is_task && name.SameTask(own_)) return OkStatus();
  for (const auto& task : tasks()) {
    if (!is_task || !task->name.SameTask(name)) continue;
    KeepAliveRequest request;
    request.set_context_id(id_);
    KeepAliveResponse response;
    return CallAndWait(
        *task->channel, eager_service::kKeepAlive.path, request, &response,
        UntilSoon(Clock::time_point::max(), eager_service::kKeepAlive));
  }
  return InvalidArgument(
      "Unable to find worker interface corresponding to "
      "task ",
      task_name);
}

}  // namespace headrace::distributed
