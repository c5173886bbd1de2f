// Tasks, errors and late answers of the coordination service.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/device_name.h"
#include "base/status.h"
#include "xla/tsl/protobuf/coordination_service.pb.h"

namespace headrace::distributed {

// By job and index.
using TaskId = std::pair<std::string, int>;

inline std::string NameOf(const TaskId& task) {
  return DeviceName::OfTask(task.first, task.second).ToString();
}
inline TaskId IdOf(const tensorflow::CoordinatedTask& task) {
  return {task.job_name(), task.task_id()};
}
inline tensorflow::CoordinatedTask TaskOf(const TaskId& id) {
  tensorflow::CoordinatedTask task;
  task.set_job_name(id.first);
  task.set_task_id(id.second);
  return task;
}

// The error, marked as TensorFlow marks those of its coordination service:
// texts of errors that contain it show the mark.
inline Status Marked(Status s,
                     const tensorflow::CoordinationServiceError& mark = {}) {
  s.SetPayload("type.googleapis.com/tensorflow.CoordinationServiceError",
               absl::Cord(mark.SerializeAsString()));
  return s;
}

// What is done once the lock is let go: answers, mostly.
using Ending = std::vector<std::function<void()>>;

inline void RunAll(const Ending& then) {
  for (const auto& f : then) f();
}

}  // namespace headrace::distributed
