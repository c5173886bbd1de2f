// The tasks that a session of a master uses.
#pragma once

#include <string>
#include <vector>

#include "distributed/messages.h"
#include "distributed/over_steps.h"
#include "distributed/placer.h"
#include "distributed/worker/worker.h"

namespace headrace::distributed {

// One of them, as the master reaches it.
struct Task {
  DeviceName name;
  std::shared_ptr<Channel> channel;  // null: the worker of this process
  std::vector<tensorflow::DeviceAttributes> devices;
  std::shared_ptr<OverSteps> over = std::make_shared<OverSteps>();
};

// Those of the cluster that one of `filters` (names of devices, perhaps in
// part) stands for, all without filters; `worker`'s own always, first. Waits
// for those that are not up yet, until `deadline`; tells of it every ten
// seconds.
StatusOr<std::vector<Task>> FindTasks(Worker& worker, Cluster& cluster,
                                      const std::vector<std::string>& filters,
                                      Clock::time_point deadline);

// How long a call that makes or ends something may take when its caller sets no
// deadline.
inline constexpr std::chrono::minutes kRendezvousTime{10};
Clock::time_point DeadlineOr(Clock::time_point deadline,
                             std::chrono::milliseconds otherwise);

}  // namespace headrace::distributed
