#include "distributed/coordination/agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "distributed/group/awaited.h"
#include "distributed/messages.h"
#include "distributed/wire/methods.h"

namespace headrace::distributed {
namespace {

// Of a leader that is gone at the end, as may well be.
constexpr std::chrono::milliseconds kFarewell{1'000};
constexpr std::chrono::milliseconds kAgain{100};

}  // namespace

tensorflow::CoordinatedTask CoordinationAgent::Self() const {
  tensorflow::CoordinatedTask self;
  self.set_job_name(*options_.task.job);
  self.set_task_id(static_cast<int>(*options_.task.task));
  return self;
}

// A leader that is being started is waited for.
Status CoordinationAgent::Ask(const char* path,
                              const google::protobuf::MessageLite& request,
                              google::protobuf::MessageLite* response) {
  CallOptions call;
  call.deadline = Clock::now() + options_.patience;
  call.wait_for_ready = true;
  while (true) {
    HR_ASSIGN_OR_RETURN(
        const Answer answer,
        AnswerTo(*options_.channel, path, WriteMessage(request), call));
    if (answer.ok()) return ReadMessage(answer.body, response);
    const Status s = StatusOf(answer);
    const std::string text =
        absl::StrCat(options_.leader.ToString(), ": ", s.message());
    if (absl::IsDeadlineExceeded(s)) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited ", options_.patience.count() / 1000,
                       " s for all tasks at ", text));
    }
    if (!absl::IsUnavailable(s) || Clock::now() + kAgain >= call.deadline) {
      return Status(s.code(), text);
    }
    HR_RETURN_IF_ERROR(WaitToAskAgain());
  }
}

Status CoordinationAgent::Start() {
  tensorflow::RegisterTaskRequest request;
  tensorflow::RegisterTaskResponse registered;
  request.set_incarnation(options_.incarnation);
  *request.mutable_source_task() = Self();
  HR_RETURN_IF_ERROR(
      Ask(coordination::kRegisterTask.path, request, &registered));
  HR_ASSIGN_OR_RETURN(auto loop, EventLoop::Real());
  {
    MutexLock lock(mutex_);
    loop_ = std::move(loop);
    heard_ = Clock::now();
  }
  Beat();
  tensorflow::WaitForAllTasksRequest wait;
  tensorflow::WaitForAllTasksResponse all;
  *wait.mutable_source_task() = Self();
  for (const auto& device : options_.devices) {
    wait.mutable_device_info()->add_device()->PackFrom(device);
  }
  return Ask(coordination::kWaitForAllTasks.path, wait, &all);
}

void CoordinationAgent::Beat() {
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    loop_->At(Clock::now() + options_.beat, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Beat();
    });
  }
  tensorflow::HeartbeatRequest request;
  request.set_incarnation(options_.incarnation);
  *request.mutable_source_task() = Self();
  CallOptions call;
  call.deadline = Clock::now() + options_.beat;
  options_.channel->Start(coordination::kHeartbeat.path, WriteMessage(request),
                          call,
                          [weak = weak_from_this()](const Answer& answer) {
                            if (const auto self = weak.lock())
                              self->Answered(StatusOf(answer));
                          });
}

void CoordinationAgent::Answered(const Status& s) {
  Status why = s;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    const Clock::time_point now = Clock::now();
    if (s.ok()) heard_ = now;
    const bool silent = absl::IsUnavailable(s) || absl::IsDeadlineExceeded(s);
    // Its process is gone at once where nobody listens; else it may be busy.
    if (s.ok() || (silent && now - heard_ < options_.silence)) return;
    if (silent) {
      why = Unavailable(options_.leader.ToString(), " is gone: ", s.message());
    }
    stopped_ = true;
  }
  if (options_.lost) options_.lost(why);
}

void CoordinationAgent::Stop(const Status& failure) {
  bool leaves;
  std::unique_ptr<EventLoop> loop;  // ends behind the lock, which it may want
  {
    MutexLock lock(mutex_);
    leaves = !std::exchange(stopped_, true);
    loop = std::move(loop_);
  }
  if (leaves && !failure.ok()) {
    tensorflow::ReportErrorToServiceRequest request;
    *request.mutable_error_origin() = Self();
    request.set_error_code(static_cast<int>(failure.code()));
    request.set_error_message(std::string(failure.message()));
    CallOptions call;
    call.deadline = Clock::now() + kFarewell;
    AnswerTo(*options_.channel, coordination::kReportErrorToService.path,
             WriteMessage(request), call)
        .IgnoreError();
  }
}

}  // namespace headrace::distributed
