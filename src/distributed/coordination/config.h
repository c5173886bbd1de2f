// What a ConfigProto says of the coordination service
// (experimental.coordination_config).
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "base/device_name.h"
#include "base/status.h"
#include "distributed/coordination/task_id.h"
#include "tensorflow/core/protobuf/coordination_config.pb.h"

namespace headrace::distributed {

struct CoordinationConfig {
  std::set<TaskId> tasks;            // that may come
  std::optional<DeviceName> leader;  // a task of the cluster
  // Jobs of whose tasks' errors the others are not told.
  std::set<std::string> recoverable;
  // Whether a task that was silent for too long may come again.
  bool may_come_again = false;
  std::optional<std::chrono::milliseconds> silence;   // of a task that lives
  std::optional<std::chrono::milliseconds> patience;  // until all have come
};

// `tasks`: those of the cluster. InvalidArgument for what cannot be,
// Unimplemented for what is not done here; the field is named.
StatusOr<CoordinationConfig> ReadCoordinationConfig(
    const tensorflow::CoordinationServiceConfig& given, std::set<TaskId> tasks);

}  // namespace headrace::distributed
