#include "distributed/master/master.h"

#include <utility>

namespace headrace::distributed {
namespace {

std::string NotFoundText(const std::string& handle) {
  return absl::StrCat("Session ", handle,
                      " is not found. Possibly, this master has restarted.");
}

}  // namespace

StatusOr<std::shared_ptr<MasterSession>> Master::Create(
    tensorflow::CreateSessionRequest request, Clock::time_point deadline) {
  if (request.config().experimental().has_coordination_config()) {
    return Unimplemented(
        "experimental.coordination_config of a session: the task takes it, in "
        "the default_session_config of its ServerDef");
  }
  // What the client says counts before what the server was told.
  tensorflow::ConfigProto config =
      worker_->cluster()->def().default_session_config();
  config.MergeFrom(request.config());
  *request.mutable_config() = std::move(config);
  HR_ASSIGN_OR_RETURN(
      auto session, MasterSession::Make(worker_, request,
                                        DeadlineOr(deadline, kRendezvousTime)));
  {
    MutexLock lock(mutex_);
    if (!stopped_) {
      sessions_[session->handle()] = session;
      return session;
    }
  }
  session->Close();
  return Cancelled("the server is stopped");
}

StatusOr<std::shared_ptr<MasterSession>> Master::Find(
    const std::string& handle) {
  MutexLock lock(mutex_);
  const auto it = sessions_.find(handle);
  if (it != sessions_.end()) return it->second;
  return Aborted("Session ", handle, " is not found.");
}

Status Master::Close(const std::string& handle) {
  const auto session = Find(handle);
  if (!session.ok()) return Aborted(NotFoundText(handle));
  {
    MutexLock lock(mutex_);
    sessions_.erase(handle);
  }
  (*session)->Close();
  return OkStatus();
}

StatusOr<std::vector<Task>> Master::TasksOf(const std::string& handle,
                                            Clock::time_point deadline) {
  if (handle.empty()) {
    return FindTasks(*worker_, *worker_->cluster(), {},
                     DeadlineOr(deadline, kRendezvousTime));
  }
  const auto session = Find(handle);
  if (!session.ok()) return InvalidArgument(NotFoundText(handle));
  return (*session)->tasks();
}

std::vector<std::shared_ptr<MasterSession>> Master::TakeAll() {
  std::vector<std::shared_ptr<MasterSession>> all;
  MutexLock lock(mutex_);
  for (auto& [handle, session] : std::exchange(sessions_, {})) {
    all.push_back(std::move(session));
  }
  return all;
}

Status Master::Reset(const tensorflow::ResetRequest& request,
                     Clock::time_point deadline) {
  deadline = DeadlineOr(deadline, kRendezvousTime);
  for (const auto& session : TakeAll()) session->Close();
  const auto& filters = request.device_filters();
  HR_ASSIGN_OR_RETURN(const std::vector<Task> tasks,
                      FindTasks(*worker_, *worker_->cluster(),
                                {filters.begin(), filters.end()}, deadline));
  tensorflow::CleanupAllRequest clean;
  *clean.mutable_container() = request.container();
  CallOptions options;
  options.deadline = deadline;
  Calls calls;
  for (const Task& task : tasks) {
    if (!task.channel) {
      worker_->CleanUpAll(
          {request.container().begin(), request.container().end()});
      continue;
    }
    calls.Start(*task.channel, absl::StrCat(kWorkerService, "CleanupAll"),
                WriteMessage(clean), options);
  }
  return calls.Wait();
}

void Master::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  for (const auto& session : TakeAll()) session->Close();
}

}  // namespace headrace::distributed
