// Who of a cluster's tasks is there, as TensorFlow's coordination service has
// it: what MultiWorkerMirroredStrategy asks of the task that leads. Tasks
// register, wait for all, tell every few seconds that they live, and each other
// what they like (key_values.h). Barriers are not served.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "distributed/coordination/key_values.h"
#include "distributed/transport.h"
#include "xla/tsl/protobuf/coordination_service.pb.h"

namespace headrace::distributed {

// By job and index.
using TaskId = std::pair<std::string, int>;

struct CoordinationOptions {
  std::set<TaskId> tasks;  // that may come
  uint64_t incarnation = 0;
  // Who says nothing for so long is gone: as long as TensorFlow waits.
  std::chrono::milliseconds silence{10'000};
  // Called once a task is gone, or says that it failed; and where the leader
  // tells this of another one.
  std::function<void(const Status&)> lost;
  // To tell tasks of it; null where there is no such task, or it is this one.
  std::function<std::shared_ptr<Channel>(const TaskId& task)> channel_of;
};

// Thread-safe. Calls are answered behind the lock. Silence is noticed when some
// task tells that it lives.
class CoordinationService
    : public std::enable_shared_from_this<CoordinationService> {
 public:
  explicit CoordinationService(CoordinationOptions options)
      : options_(std::move(options)) {}

  // Who is to come; until then, who waits for all goes on to wait.
  void Expect(std::set<TaskId> tasks);
  // By path; null services give the paths alone.
  static std::map<std::string, Method> Methods(
      std::shared_ptr<CoordinationService> service);
  // Who waits gets the error, and whoever asks from now on.
  void Stop(const Status& why);

 private:
  using Call = std::shared_ptr<ServerCall>;
  struct Task {
    uint64_t incarnation = 0;
    bool connected = false;
    bool waits = false;  // for all, or has
    Clock::time_point seen;
    tensorflow::DeviceInfo devices;
  };
  using Ending = std::vector<std::function<void()>>;

  StatusOr<Task*> Find(const tensorflow::CoordinatedTask& task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(const Status& why, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers all, once all are there.
  void Complete(Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Look(Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status Register(const tensorflow::RegisterTaskRequest& request, Ending* then);
  Status Beat(const tensorflow::HeartbeatRequest& request, Ending* then);
  void WaitForAll(const tensorflow::WaitForAllTasksRequest& request,
                  const Call& call);
  void Poll(const tensorflow::PollForErrorRequest& request, const Call& call);
  Status Hear(const tensorflow::ReportErrorToTaskRequest& request);
  Status Leave(const tensorflow::CoordinatedTask& task);
  Status Report(const tensorflow::ReportErrorToServiceRequest& request,
                Ending* then);
  Status Tell(const tensorflow::GetTaskStateRequest& request,
              tensorflow::GetTaskStateResponse* response);
  void Hold(const Call& call, std::vector<Call>* calls);

  const CoordinationOptions options_;
  const std::shared_ptr<KeyValues> values_ = std::make_shared<KeyValues>();
  Mutex mutex_;
  bool expects_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<TaskId> expected_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  Status failed_ ABSL_GUARDED_BY(mutex_);
  std::vector<Call> waiting_ ABSL_GUARDED_BY(mutex_);  // for all
  std::vector<Call> polls_ ABSL_GUARDED_BY(mutex_);    // for an error
};

}  // namespace headrace::distributed
