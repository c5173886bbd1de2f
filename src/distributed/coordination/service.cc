#include "distributed/coordination/service.h"

#include "absl/strings/str_cat.h"
#include "base/device_name.h"
#include "distributed/messages.h"
#include "distributed/service.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

// Of strangers, and of tasks that ask again.
constexpr size_t kMostHeld = 4096;

std::string NameOf(const TaskId& task) {
  return DeviceName::OfTask(task.first, task.second).ToString();
}
TaskId IdOf(const CoordinatedTask& task) {
  return {task.job_name(), task.task_id()};
}

absl::StatusCode CodeOf(int code) {
  return code > 0 && code <= 16 ? static_cast<absl::StatusCode>(code)
                                : absl::StatusCode::kUnknown;
}

void RunAll(const std::vector<std::function<void()>>& then) {
  for (const auto& f : then) f();
}

}  // namespace

StatusOr<CoordinationService::Task*> CoordinationService::Find(
    const CoordinatedTask& task) {
  HR_RETURN_IF_ERROR(failed_);
  const TaskId id = IdOf(task);
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected task request with task_name=",
                           NameOf(id));
  }
  return &tasks_[id];
}

void CoordinationService::Fail(const Status& why, Ending* then) {
  if (!failed_.ok()) return;
  failed_ = why;
  for (auto* calls : {&waiting_, &polls_}) {
    for (auto& call : std::exchange(*calls, {})) {
      then->push_back([call, why] { call->Finish(AnswerOf(why)); });
    }
  }
  if (options_.lost) then->push_back([this, why] { options_.lost(why); });
  if (!options_.channel_of) return;
  ReportErrorToTaskRequest request;
  request.set_error_code(static_cast<int>(why.code()));
  request.set_error_message(std::string(why.message()));
  const Bytes bytes = WriteMessage(request);
  for (const auto& [id, task] : tasks_) {
    if (!task.connected) continue;
    then->push_back([this, id = id, bytes] {
      CallOptions call;
      call.deadline = Clock::now() + coordination::kReportErrorToTask.deadline;
      if (const auto channel = options_.channel_of(id)) {
        channel->Start(coordination::kReportErrorToTask.path, bytes, call,
                       [](const Answer&) {});
      }
    });
  }
}

void CoordinationService::Look(Ending* then) {
  const Clock::time_point since = Clock::now() - options_.silence;
  for (const auto& [id, task] : tasks_) {
    if (!task.connected || task.seen > since) continue;
    return Fail(
        Unavailable("Task ", NameOf(id),
                    " heartbeat timeout. This indicates that the remote task "
                    "has failed, got preempted, or crashed unexpectedly."),
        then);
  }
}

void CoordinationService::Complete(Ending* then) {
  if (!expects_) return;
  WaitForAllTasksResponse response;
  response.set_leader_incarnation(options_.incarnation);
  for (const TaskId& id : expected_) {
    const auto at = tasks_.find(id);
    if (at == tasks_.end() || !at->second.waits) return;
    response.mutable_device_info()->MergeFrom(at->second.devices);
  }
  const Bytes body = WriteMessage(response);
  for (auto& call : std::exchange(waiting_, {})) {
    then->push_back([call, body] { call->Finish(AnswerOf(OkStatus(), body)); });
  }
}

void CoordinationService::Expect(std::set<TaskId> tasks) {
  Ending then;
  {
    MutexLock lock(mutex_);
    expected_ = std::move(tasks);
    expects_ = true;
    Complete(&then);
  }
  RunAll(then);
}

void CoordinationService::Stop(const Status& why) {
  Ending then;
  {
    MutexLock lock(mutex_);
    Fail(why, &then);
  }
  values_->Stop(why);
  RunAll(then);
}

Status CoordinationService::Register(const RegisterTaskRequest& request,
                                     Ending* then) {
  MutexLock lock(mutex_);
  const TaskId id = IdOf(request.source_task());
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected task registered with task_name=",
                           NameOf(id));
  }
  HR_ASSIGN_OR_RETURN(Task * task, Find(request.source_task()));
  if (task->connected && task->waits &&
      task->incarnation != request.incarnation()) {
    const Status why = Aborted(
        NameOf(id),
        " unexpectedly tried to connect with a different incarnation. It has "
        "likely restarted.");
    Fail(why, then);
    return why;
  }
  task->connected = true;
  task->incarnation = request.incarnation();
  task->seen = Clock::now();
  return OkStatus();
}

Status CoordinationService::Beat(const HeartbeatRequest& request,
                                 Ending* then) {
  MutexLock lock(mutex_);
  const TaskId id = IdOf(request.source_task());
  const std::string name = NameOf(id);
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected heartbeat request from task: ", name,
                           ". This usually implies a configuration error.");
  }
  HR_ASSIGN_OR_RETURN(Task * task, Find(request.source_task()));
  if (!task->connected) {
    return InvalidArgument(
        "Task with task_name=", name,
        " must be registered before sending heartbeat messages. The service "
        "might have restarted, please restart / reset and register again.");
  }
  if (task->incarnation != request.incarnation()) {
    return Aborted(
        name, " Heartbeat: Incarnation ID mismatch: expecting ",
        task->incarnation, " but got ", request.incarnation(),
        ". The task has restarted and likely crashed earlier - check "
        "for any earlier errors or any scheduler events (e.g. "
        "preemption, eviction) to debug further.");
  }
  task->seen = Clock::now();
  Look(then);
  return failed_;
}

void CoordinationService::Hold(const Call& call, std::vector<Call>* calls) {
  call->OnCancel(
      [weak = weak_from_this(), calls, held = std::weak_ptr<ServerCall>(call)] {
        const auto self = weak.lock();
        const auto gone = held.lock();
        if (!self || !gone) return;
        MutexLock lock(self->mutex_);
        std::erase(*calls, gone);
      });
}

void CoordinationService::WaitForAll(const WaitForAllTasksRequest& request,
                                     const Call& call) {
  Ending then;
  Status s;
  {
    MutexLock lock(mutex_);
    const StatusOr<Task*> task = Find(request.source_task());
    s = task.status();
    if (s.ok() && !(*task)->connected) {
      s = FailedPrecondition(NameOf(IdOf(request.source_task())),
                             " waits for all tasks and has not registered");
    }
    if (s.ok() && waiting_.size() >= kMostHeld) {
      s = absl::ResourceExhaustedError("too many wait for all tasks");
    }
    if (s.ok()) {
      (*task)->waits = true;
      (*task)->devices = request.device_info();
      waiting_.push_back(call);
      Complete(&then);
    }
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  RunAll(then);
  if (then.empty()) Hold(call, &waiting_);
}

void CoordinationService::Poll(const PollForErrorRequest& request,
                               const Call& call) {
  Status s;
  {
    MutexLock lock(mutex_);
    s = Find(request.source_task()).status();
    if (s.ok() && polls_.size() >= kMostHeld) {
      s = absl::ResourceExhaustedError("too many wait for an error");
    }
    if (s.ok()) polls_.push_back(call);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  Hold(call, &polls_);
}

Status CoordinationService::Leave(const CoordinatedTask& source) {
  MutexLock lock(mutex_);
  HR_ASSIGN_OR_RETURN(Task * task, Find(source));
  task->connected = false;
  return OkStatus();
}

Status CoordinationService::Report(const ReportErrorToServiceRequest& request,
                                   Ending* then) {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(Find(request.error_origin()).status());
  Fail(Status(CodeOf(request.error_code()),
              absl::StrCat(NameOf(IdOf(request.error_origin())), ": ",
                           request.error_message())),
       then);
  return OkStatus();
}

Status CoordinationService::Tell(const GetTaskStateRequest& request,
                                 GetTaskStateResponse* response) {
  // Each has the text of an error in the answer.
  if (request.source_task_size() > static_cast<int>(options_.tasks.size())) {
    return InvalidArgument("states of ", request.source_task_size(),
                           " tasks are asked for; the cluster has ",
                           options_.tasks.size());
  }
  MutexLock lock(mutex_);
  for (const CoordinatedTask& asked : request.source_task()) {
    const TaskId id = IdOf(asked);
    if (!options_.tasks.contains(id)) {
      return InvalidArgument("Unexpected task request with task_name=",
                             NameOf(id));
    }
    auto* told = response->add_task_state();
    told->mutable_task()->set_job_name(id.first);
    told->mutable_task()->set_task_id(id.second);
    const auto at = tasks_.find(id);
    const bool connected = at != tasks_.end() && at->second.connected;
    told->set_state(connected ? TASKSTATE_CONNECTED : TASKSTATE_DISCONNECTED);
    if (connected) told->set_incarnation(at->second.incarnation);
    if (failed_.ok()) continue;
    // An error of one ends all.
    told->set_state(TASKSTATE_ERROR);
    told->set_error_code(static_cast<int>(failed_.code()));
    told->set_error_message(std::string(failed_.message()));
  }
  return OkStatus();
}

Status CoordinationService::Hear(const ReportErrorToTaskRequest& request) {
  if (options_.lost) {
    options_.lost(
        Status(CodeOf(request.error_code()), request.error_message()));
  }
  return OkStatus();
}

std::map<std::string, Method> CoordinationService::Methods(
    std::shared_ptr<CoordinationService> s) {
  std::map<std::string, Method> methods =
      KeyValues::Methods(s ? s->values_ : nullptr);
  methods[coordination::kGetTaskState.path] =
      AtOnce<GetTaskStateRequest, GetTaskStateResponse>(
          [s](const GetTaskStateRequest& request, auto* response) {
            return s->Tell(request, response);
          });
  // A method that answers at once, and then tells others of what it led to.
  const auto after = [](auto f) {
    return [f](const auto& request, auto* response) {
      Ending then;
      const Status status = f(request, response, &then);
      RunAll(then);
      return status;
    };
  };
  methods[coordination::kRegisterTask.path] =
      AtOnce<RegisterTaskRequest, RegisterTaskResponse>(
          after([s](const auto& request, auto* response, Ending* then) {
            response->set_leader_incarnation(s->options_.incarnation);
            return s->Register(request, then);
          }));
  methods[coordination::kHeartbeat.path] =
      AtOnce<HeartbeatRequest, HeartbeatResponse>(
          after([s](const auto& request, auto* response, Ending* then) {
            response->set_leader_incarnation(s->options_.incarnation);
            return s->Beat(request, then);
          }));
  methods[coordination::kReportErrorToService.path] =
      AtOnce<ReportErrorToServiceRequest, ReportErrorToServiceResponse>(
          after([s](const auto& request, auto*, Ending* then) {
            return s->Report(request, then);
          }));
  methods[coordination::kReportErrorToTask.path] =
      AtOnce<ReportErrorToTaskRequest, ReportErrorToTaskResponse>(
          [s](const ReportErrorToTaskRequest& request, auto*) {
            return s->Hear(request);
          });
  methods[coordination::kShutdownTask.path] =
      AtOnce<ShutdownTaskRequest, ShutdownTaskResponse>(
          [s](const ShutdownTaskRequest& request, auto*) {
            return s->Leave(request.source_task());
          });
  methods[coordination::kWaitForAllTasks.path] = [s](const Call& call,
                                                     const Bytes& bytes) {
    WaitForAllTasksRequest request;
    const Status status = ReadMessage(bytes, &request);
    if (!status.ok()) return call->Finish(AnswerOf(status));
    s->WaitForAll(request, call);
  };
  methods[coordination::kPollForError.path] = [s](const Call& call,
                                                  const Bytes& bytes) {
    PollForErrorRequest request;
    const Status status = ReadMessage(bytes, &request);
    if (!status.ok()) return call->Finish(AnswerOf(status));
    s->Poll(request, call);
  };
  return methods;
}

}  // namespace headrace::distributed
