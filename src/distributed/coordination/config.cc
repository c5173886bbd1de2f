#include "distributed/coordination/config.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace headrace::distributed {
namespace {

constexpr char kPath[] = "experimental.coordination_config.";

// Longer times are taken for it, as sums of time have an end.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

StatusOr<std::optional<std::chrono::milliseconds>> TimeOf(const char* field,
                                                          int64_t ms) {
  if (ms < 0) {
    return InvalidArgument(kPath, field, " is ", ms, ": no time is negative");
  }
  if (ms == 0) return std::nullopt;
  return std::min(std::chrono::milliseconds(ms), kLongest);
}

Status NotDone(const char* field, StringView instead) {
  return Unimplemented(kPath, field, " is not supported: ", instead);
}

Status CheckWhatIsNotDone(const tensorflow::CoordinationServiceConfig& given) {
  if (given.shutdown_barrier_timeout_in_ms() != 0) {
    return NotDone("shutdown_barrier_timeout_in_ms",
                   "who leaves waits for nobody");
  }
  if (given.cluster_register_with_barrier()) {
    return NotDone("cluster_register_with_barrier",
                   "tasks register one by one, and wait for all then");
  }
  if (given.enable_health_check()) {
    return NotDone("enable_health_check", "heartbeats tell who lives");
  }
  if (given.force_disable()) {
    return NotDone("force_disable",
                   "a service that nobody asks for does nothing");
  }
  return OkStatus();
}

Status LeaveOutUnlisted(const tensorflow::CoordinationServiceConfig& given,
                        std::set<TaskId>* tasks) {
  if (given.coordinated_job_list().empty()) return OkStatus();
  std::set<TaskId> listed;
  for (const auto& job : given.coordinated_job_list()) {
    const auto before = listed.size();
    for (const TaskId& task : *tasks) {
      if (task.first == job.name() && task.second < job.num_tasks()) {
        listed.insert(task);
      }
    }
    if (static_cast<int64_t>(listed.size() - before) == job.num_tasks()) {
      continue;
    }
    return InvalidArgument(kPath, "coordinated_job_list wants ",
                           job.num_tasks(), " tasks of the job '", job.name(),
                           "', of which the cluster has not as many (or the "
                           "list has it twice)");
  }
  *tasks = std::move(listed);
  return OkStatus();
}

}  // namespace

StatusOr<CoordinationConfig> ReadCoordinationConfig(
    const tensorflow::CoordinationServiceConfig& given,
    std::set<TaskId> tasks) {
  if (!given.service_type().empty() && given.service_type() != "standalone") {
    return InvalidArgument(kPath,
                           "service_type is 'standalone' or empty, got '",
                           given.service_type(), "'");
  }
  HR_RETURN_IF_ERROR(CheckWhatIsNotDone(given));
  CoordinationConfig made;
  HR_RETURN_IF_ERROR(LeaveOutUnlisted(given, &tasks));
  made.tasks = std::move(tasks);
  if (!given.service_leader().empty()) {
    DeviceName leader;
    if (!DeviceName::Parse(given.service_leader(), &leader) || !leader.job ||
        !leader.task || !made.tasks.contains({*leader.job, *leader.task})) {
      return InvalidArgument(kPath, "service_leader is '",
                             given.service_leader(),
                             "', which is no task that takes part");
    }
    made.leader = DeviceName::OfTask(*leader.job, *leader.task);
  }
  made.recoverable.insert(given.recoverable_jobs().begin(),
                          given.recoverable_jobs().end());
  made.may_come_again = given.allow_new_incarnation_to_reconnect();
  HR_ASSIGN_OR_RETURN(made.silence, TimeOf("heartbeat_timeout_in_ms",
                                           given.heartbeat_timeout_in_ms()));
  HR_ASSIGN_OR_RETURN(made.patience,
                      TimeOf("cluster_register_timeout_in_ms",
                             given.cluster_register_timeout_in_ms()));
  return made;
}

}  // namespace headrace::distributed
