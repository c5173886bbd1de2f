// The sessions that a task's clients have made.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/master/many_steps.h"
#include "distributed/master/master_session.h"

namespace headrace::distributed {

// Thread-safe.
class Master {
 public:
  explicit Master(std::shared_ptr<Worker> worker)
      : worker_(std::move(worker)) {}
  ~Master() { Stop(); }

  StatusOr<std::shared_ptr<MasterSession>> Create(
      tensorflow::CreateSessionRequest request, Clock::time_point deadline);
  // Aborted, with upstream's text, where there is none (any more).
  StatusOr<std::shared_ptr<MasterSession>> Find(const std::string& handle);
  Status Close(const std::string& handle);
  // Those of a session, or, "", of all tasks of the cluster; this task's first.
  StatusOr<std::vector<Task>> TasksOf(const std::string& handle,
                                      Clock::time_point deadline);
  // Closes all sessions, and forgets what the tasks that `filters` let pass
  // hold in these containers; none: in the standard one.
  Status Reset(const tensorflow::ResetRequest& request,
               Clock::time_point deadline);
  // Closes all sessions; there are no new ones.
  void Stop();

  RequestIds requests;
  ManyStepsCalls many_steps;

 private:
  std::vector<std::shared_ptr<MasterSession>> TakeAll();

  const std::shared_ptr<Worker> worker_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::shared_ptr<MasterSession>> sessions_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
