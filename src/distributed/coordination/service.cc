#include "distributed/coordination/service.h"

#include <climits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"
#include "distributed/messages.h"
#include "distributed/service.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

using namespace tensorflow;  // NOLINT: the messages of the service

// Of strangers, and of tasks that ask again.
constexpr size_t kMostHeld = 4096;

// Of an error that a task reports, in bytes: the error is kept, and is part of
// the errors of barriers.
constexpr size_t kLongestText = 2048;
// Different sets of tasks of which the living are asked for.
constexpr size_t kMostSets = 64;

absl::StatusCode CodeOf(int code) {
  return code > 0 && code <= 16 ? static_cast<absl::StatusCode>(code)
                                : absl::StatusCode::kUnknown;
}

// As much of it as is kept.
std::string Cut(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  size_t end = kLongestText;
  while (end > 0 && IsUtf8Continuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

StatusOr<CoordinationService::Task*> CoordinationService::Find(
    const CoordinatedTask& task) {
  HR_RETURN_IF_ERROR(stopped_);
  const TaskId id = IdOf(task);
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected task request with task_name=",
                           NameOf(id));
  }
  return &tasks_[id];
}

Status CoordinationService::Trouble() {
  HR_RETURN_IF_ERROR(stopped_);
  for (const auto& [id, task] : tasks_) {
    if (!task.recoverable) HR_RETURN_IF_ERROR(task.error);
  }
  return OkStatus();
}

void CoordinationService::TellAll(const Status& why, const TaskId* whose,
                                  Ending* then) {
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
  if (whose) {
    *request.mutable_error_payload()->mutable_source_task() = TaskOf(*whose);
  }
  const Bytes bytes = WriteMessage(request);
  for (const auto& [id, task] : tasks_) {
    // Who is said to have failed may be there, and is to know of it.
    if (task.state != TASKSTATE_CONNECTED && !(whose && id == *whose)) continue;
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

void CoordinationService::Fail(const TaskId& id, const Status& why,
                               Ending* then) {
  Task& task = tasks_[id];
  task.state = TASKSTATE_ERROR;
  task.error = why;
  barriers_->Failed(id, why, then);
  if (!task.recoverable) TellAll(why, &id, then);
  Changed(then);
}

void CoordinationService::Look(Ending* then) {
  const Clock::time_point since = Clock::now() - options_.silence;
  for (const auto& [id, task] : tasks_) {
    if (task.state != TASKSTATE_CONNECTED || task.seen > since) continue;
    Fail(id,
         Marked(Unavailable(
             "Task ", NameOf(id),
             " heartbeat timeout. This indicates that the remote task has "
             "failed, got preempted, or crashed unexpectedly. Check the task "
             "logs for an earlier error or scheduler events (e.g. preemption, "
             "eviction) to debug further.")),
         then);
  }
}

void CoordinationService::Describe(const TaskId& id,
                                   CoordinatedTaskStateInfo* told) {
  *told->mutable_task() = TaskOf(id);
  told->set_state(TASKSTATE_DISCONNECTED);
  const auto at = tasks_.find(id);
  if (at == tasks_.end()) return;
  const Task& task = at->second;
  told->set_state(task.state);
  told->set_incarnation(task.incarnation);
  if (task.error.ok()) return;
  told->set_error_code(static_cast<int>(task.error.code()));
  told->set_error_message(std::string(task.error.message()));
  *told->mutable_error_payload()->mutable_source_task() = TaskOf(id);
}

Bytes CoordinationService::StatesOf(const std::string& job) {
  WatchJobStateResponse response;
  for (const TaskId& id : options_.tasks) {
    if (id.first == job) Describe(id, response.add_task_state());
  }
  response.set_version_number(version_);
  return WriteMessage(response);
}

bool CoordinationService::AllAsked(const std::set<TaskId>& tasks,
                                   const Asking& asking, Ending* then) {
  std::set<TaskId> asked;
  for (const auto& [id, call] : asking) asked.insert(id);
  GetAliveTasksResponse response;
  for (const TaskId& id : tasks) {
    const auto at = tasks_.find(id);
    if (at == tasks_.end() || at->second.state != TASKSTATE_CONNECTED) continue;
    if (!asked.contains(id)) return false;
    *response.add_alive_tasks() = TaskOf(id);
    response.add_incarnations(at->second.incarnation);
  }
  const Bytes body = WriteMessage(response);
  for (const auto& [id, call] : asking) {
    then->push_back(
        [call = call, body] { call->Finish(AnswerOf(OkStatus(), body)); });
  }
  asked_ -= asking.size();
  return true;
}

void CoordinationService::Changed(Ending* then) {
  ++version_;
  std::map<std::string, Bytes> states;
  for (auto at = watches_.begin(); at != watches_.end();) {
    if (at->version >= version_) {
      ++at;
      continue;
    }
    const auto [known, added] = states.try_emplace(at->job);
    if (added) known->second = StatesOf(at->job);
    then->push_back([call = at->call, body = known->second] {
      call->Finish(AnswerOf(OkStatus(), body));
    });
    at = watches_.erase(at);
  }
  for (auto at = asking_.begin(); at != asking_.end();) {
    const bool over = AllAsked(at->first, at->second, then);
    at = over ? asking_.erase(at) : std::next(at);
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
    if (!stopped_.ok()) return;
    stopped_ = why;
    TellAll(why, nullptr, &then);
    std::vector<Call> calls;
    for (const Watch& watch : std::exchange(watches_, {})) {
      calls.push_back(watch.call);
    }
    for (const auto& [tasks, asking] : std::exchange(asking_, {})) {
      for (const auto& [id, call] : asking) calls.push_back(call);
    }
    for (const Call& call : calls) {
      then.push_back([call, why] { call->Finish(AnswerOf(why)); });
    }
  }
  barriers_->Stop(why);
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
  const bool was_silent = absl::IsUnavailable(task->error);
  if (task->state == TASKSTATE_ERROR && was_silent && options_.may_come_again) {
    barriers_->Back(id);
    *task = Task();
  }
  if (task->state == TASKSTATE_ERROR) {
    return Aborted(
        NameOf(id),
        " unexpectedly tried to connect while it is already in error. "
        "ResetTask() should be called before a subsequent connect attempt. "
        "Existing error: ",
        task->error.ToString());
  }
  const bool connected = task->state == TASKSTATE_CONNECTED;
  const bool another = task->incarnation != request.incarnation();
  if (connected && task->waits && another) {
    const Status why = Marked(Aborted(
        NameOf(id),
        " unexpectedly tried to connect with a different incarnation. It has "
        "likely restarted."));
    Fail(id, why, then);
    return why;
  }
  task->state = TASKSTATE_CONNECTED;
  task->recoverable = request.source_task().recoverable() ||
                      options_.recoverable.contains(id.first);
  task->incarnation = request.incarnation();
  task->seen = Clock::now();
  if (!connected || another) Changed(then);
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
  const Clock::time_point now = Clock::now();
  if (task->state == TASKSTATE_ERROR) {
    return Aborted(
        "Unexpected heartbeat request from an already-in-error "
        "task: ",
        name, " with existing error: ", task->error.ToString());
  }
  if (task->state == TASKSTATE_DISCONNECTED) {
    // One that was under way when it left is nothing wrong.
    if (now - task->seen < options_.silence) return OkStatus();
    return InvalidArgument(
        "Task with task_name=", name,
        " must be registered before sending heartbeat messages. The service "
        "might have restarted, please restart / reset and register again.");
  }
  if (task->incarnation != request.incarnation()) {
    const Status why = Marked(
        Aborted(name, " Heartbeat: Incarnation ID mismatch: expecting ",
                task->incarnation, " but got ", request.incarnation(),
                ". The task has restarted and likely crashed earlier - check "
                "for any earlier errors or any scheduler events (e.g. "
                "preemption, eviction) to debug further."));
    Fail(id, why, then);
    return why;
  }
  task->seen = now;
  Look(then);
  return Trouble();
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
    if (s.ok()) s = Trouble();
    if (s.ok() && (*task)->state != TASKSTATE_CONNECTED) {
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
    if (s.ok()) s = Trouble();
    if (s.ok() && polls_.size() >= kMostHeld) {
      s = absl::ResourceExhaustedError("too many wait for an error");
    }
    if (s.ok()) polls_.push_back(call);
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  Hold(call, &polls_);
}

Status CoordinationService::Leave(const CoordinatedTask& source, Ending* then) {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(stopped_);
  const TaskId id = IdOf(source);
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected disconnect request with task_name=",
                           NameOf(id));
  }
  Task& task = tasks_[id];
  if (task.state == TASKSTATE_DISCONNECTED) {
    return FailedPrecondition("The task is already disconnected: ", NameOf(id));
  }
  task.state = TASKSTATE_DISCONNECTED;
  task.error = OkStatus();
  task.waits = false;
  task.seen = Clock::now();
  barriers_->Back(id);
  barriers_->Left(id, then);
  Changed(then);
  return OkStatus();
}

Status CoordinationService::Report(const ReportErrorToServiceRequest& request,
                                   Ending* then) {
  MutexLock lock(mutex_);
  HR_RETURN_IF_ERROR(stopped_);
  const TaskId id = IdOf(request.error_origin());
  if (!options_.tasks.contains(id)) {
    return InvalidArgument("Unexpected request from task ", NameOf(id));
  }
  const auto at = tasks_.find(id);
  if (at == tasks_.end() || at->second.state != TASKSTATE_CONNECTED) {
    return FailedPrecondition(
        "The task is not connected or already has an error.");
  }
  CoordinationServiceError mark;
  mark.set_is_reported_error(true);
  *mark.mutable_source_task() = TaskOf(id);
  Fail(
      id,
      Marked(Status(CodeOf(request.error_code()), Cut(request.error_message())),
             mark),
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
    Describe(id, response->add_task_state());
  }
  return OkStatus();
}

void CoordinationService::WatchStates(const WatchJobStateRequest& request,
                                      const Call& call) {
  std::optional<Answer> answer;
  // Names of jobs that are not there need not be remembered.
  const auto at = options_.tasks.lower_bound({request.job_name(), INT_MIN});
  const bool known =
      at != options_.tasks.end() && at->first == request.job_name();
  {
    MutexLock lock(mutex_);
    if (!stopped_.ok()) {
      answer = AnswerOf(stopped_);
    } else if (request.version_number() < version_) {
      answer = AnswerOf(OkStatus(), StatesOf(request.job_name()));
    } else if (watches_.size() >= kMostHeld) {
      answer = AnswerOf(
          absl::ResourceExhaustedError("too many watch the states of tasks"));
    } else {
      watches_.push_back(
          {known ? at->first : "", request.version_number(), call});
    }
  }
  if (answer) return call->Finish(*answer);
  call->OnCancel(
      [weak = weak_from_this(), held = std::weak_ptr<ServerCall>(call)] {
        const auto self = weak.lock();
        const auto gone = held.lock();
        if (!self || !gone) return;
        MutexLock lock(self->mutex_);
        std::erase_if(self->watches_, [&](auto& w) { return w.call == gone; });
      });
}

void CoordinationService::AskForLiving(const GetAliveTasksRequest& request,
                                       const Call& call) {
  const TaskId own = IdOf(request.requesting_task());
  // Strangers are not alive, and need not be remembered.
  std::set<TaskId> tasks;
  bool named = false;
  for (const CoordinatedTask& task : request.tasks()) {
    const TaskId id = IdOf(task);
    if (options_.tasks.contains(id)) tasks.insert(id);
    named = named || id == own;
  }
  if (!named) {
    return call->Finish(AnswerOf(InvalidArgument(
        "Requesting task ", NameOf(own),
        " is not one of the tasks specified in a GetAliveTasks request.")));
  }
  Ending then;
  Status s;
  {
    MutexLock lock(mutex_);
    s = stopped_;
    if (s.ok() && (asked_ >= kMostHeld ||
                   (!asking_.contains(tasks) && asking_.size() >= kMostSets))) {
      s = absl::ResourceExhaustedError("too many ask for the living");
    }
    if (s.ok()) {
      const auto at = asking_.try_emplace(tasks).first;
      at->second.emplace_back(own, call);
      ++asked_;
      if (AllAsked(tasks, at->second, &then)) asking_.erase(at);
    }
  }
  if (!s.ok()) return call->Finish(AnswerOf(s));
  RunAll(then);
  if (!then.empty()) return;
  call->OnCancel(
      [weak = weak_from_this(), tasks, held = std::weak_ptr<ServerCall>(call)] {
        const auto self = weak.lock();
        const auto gone = held.lock();
        if (!self || !gone) return;
        MutexLock lock(self->mutex_);
        const auto at = self->asking_.find(tasks);
        if (at == self->asking_.end()) return;
        self->asked_ -= std::erase_if(
            at->second, [&](const auto& a) { return a.second == gone; });
        if (at->second.empty()) self->asking_.erase(at);
      });
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
  methods.merge(Barriers::Methods(s ? s->barriers_ : nullptr));
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
  // The service waits for nobody who leaves, so both do the same.
  methods[coordination::kShutdownTask.path] =
      AtOnce<ShutdownTaskRequest, ShutdownTaskResponse>(
          after([s](const auto& request, auto*, Ending* then) {
            return s->Leave(request.source_task(), then);
          }));
  methods[coordination::kResetTask.path] =
      AtOnce<ResetTaskRequest, ResetTaskResponse>(
          after([s](const auto& request, auto*, Ending* then) {
            return s->Leave(request.source_task(), then);
          }));
  const auto held = [s]<typename Request>(void (CoordinationService::*f)(
                        const Request&, const Call&)) {
    return [s, f](const Call& call, const Bytes& bytes) {
      Request request;
      const Status status = ReadMessage(bytes, &request);
      if (!status.ok()) return call->Finish(AnswerOf(status));
      (s.get()->*f)(request, call);
    };
  };
  methods[coordination::kWaitForAllTasks.path] =
      held(&CoordinationService::WaitForAll);
  methods[coordination::kPollForError.path] = held(&CoordinationService::Poll);
  methods[coordination::kWatchJobState.path] =
      held(&CoordinationService::WatchStates);
  methods[coordination::kGetAliveTasks.path] =
      held(&CoordinationService::AskForLiving);
  if (s && !s->options_.leads) {
    for (auto& [path, method] : methods) {
      if (path == coordination::kReportErrorToTask.path) continue;
      method = [](const Call& call, const Bytes&) {
        call->Finish(
            AnswerOf(Internal("Coordination service is not enabled.")));
      };
    }
  }
  return methods;
}

}  // namespace headrace::distributed
