// Who of a cluster's tasks is there, as TensorFlow's coordination service has
// it: what MultiWorkerMirroredStrategy asks of the task that leads. Tasks
// register, wait for all, tell every few seconds that they live, and each other
// what they like (key_values.h), and meet (barriers.h).
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
#include "distributed/coordination/barriers.h"
#include "distributed/coordination/key_values.h"
#include "distributed/coordination/task_id.h"
#include "distributed/transport.h"
#include "xla/tsl/protobuf/coordination_service.pb.h"

namespace headrace::distributed {

struct CoordinationOptions {
  std::set<TaskId> tasks;  // that may come
  // Whether others may ask it; where another task is said to lead, they may
  // only tell it of errors.
  bool leads = true;
  uint64_t incarnation = 0;
  // Who says nothing for so long is gone: as long as TensorFlow waits.
  std::chrono::milliseconds silence{10'000};
  // Jobs of whose tasks' errors no other task is told; a task may say the same
  // of itself.
  std::set<std::string> recoverable;
  // Whether a task that was silent for too long may register again without a
  // reset.
  bool may_come_again = false;
  // Called when a task is gone, or says that it failed; and where the leader
  // tells this of another one.
  std::function<void(const Status&)> lost;
  // To tell tasks of it; null where there is no such task, or it is this one.
  std::function<std::shared_ptr<Channel>(const TaskId& task)> channel_of;
  // For the deadlines of barriers.
  Barriers::MakeLoop make_loop = EventLoop::Real;
};

// Thread-safe. Calls are answered behind the lock. Silence is noticed when some
// task tells that it lives.
class CoordinationService
    : public std::enable_shared_from_this<CoordinationService> {
 public:
  explicit CoordinationService(CoordinationOptions options)
      : options_(std::move(options)),
        barriers_(
            std::make_shared<Barriers>(options_.tasks, options_.make_loop)) {}

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
    tensorflow::CoordinatedTaskState state = tensorflow::TASKSTATE_DISCONNECTED;
    Status error;  // in TASKSTATE_ERROR
    uint64_t incarnation = 0;
    bool waits = false;  // for all, or has
    bool recoverable = false;
    Clock::time_point seen;  // connected, or when it left
    tensorflow::DeviceInfo devices;
  };
  // Calls that ask who of some tasks is alive.
  using Asking = std::vector<std::pair<TaskId, Call>>;
  struct Watch {
    std::string job;
    int64_t version;  // which it knows
    Call call;
  };

  StatusOr<Task*> Find(const tensorflow::CoordinatedTask& task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The task has failed until it is reset: all others are told so, unless it is
  // recoverable.
  void Fail(const TaskId& id, const Status& why, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellAll(const Status& why, const TaskId* whose, Ending* then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error of a task that is not recoverable, or why this is stopped.
  Status Trouble() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers who wait for all, once all are there.
  void Complete(Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Look(Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whoever waits for news of the states of tasks gets it.
  void Changed(Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Answers who ask for the living of these, once all of them have.
  bool AllAsked(const std::set<TaskId>& tasks, const Asking& asking,
                Ending* then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Describe(const TaskId& id, tensorflow::CoordinatedTaskStateInfo* told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Bytes StatesOf(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status Register(const tensorflow::RegisterTaskRequest& request, Ending* then);
  Status Beat(const tensorflow::HeartbeatRequest& request, Ending* then);
  void WaitForAll(const tensorflow::WaitForAllTasksRequest& request,
                  const Call& call);
  void Poll(const tensorflow::PollForErrorRequest& request, const Call& call);
  Status Hear(const tensorflow::ReportErrorToTaskRequest& request);
  Status Leave(const tensorflow::CoordinatedTask& task, Ending* then);
  Status Report(const tensorflow::ReportErrorToServiceRequest& request,
                Ending* then);
  Status Tell(const tensorflow::GetTaskStateRequest& request,
              tensorflow::GetTaskStateResponse* response);
  void WatchStates(const tensorflow::WatchJobStateRequest& request,
                   const Call& call);
  void AskForLiving(const tensorflow::GetAliveTasksRequest& request,
                    const Call& call);
  void Hold(const Call& call, std::vector<Call>* calls);

  const CoordinationOptions options_;
  const std::shared_ptr<KeyValues> values_ = std::make_shared<KeyValues>();
  // Taken before those of barriers, which never ask for this one.
  Mutex mutex_;
  const std::shared_ptr<Barriers> barriers_;
  bool expects_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<TaskId> expected_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, Task> tasks_ ABSL_GUARDED_BY(mutex_);
  // Of the states of all tasks: each change is one more.
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  Status stopped_ ABSL_GUARDED_BY(mutex_);
  std::vector<Call> waiting_ ABSL_GUARDED_BY(mutex_);  // for all
  std::vector<Call> polls_ ABSL_GUARDED_BY(mutex_);    // for an error
  std::vector<Watch> watches_ ABSL_GUARDED_BY(mutex_);
  std::map<std::set<TaskId>, Asking> asking_ ABSL_GUARDED_BY(mutex_);
  size_t asked_ ABSL_GUARDED_BY(mutex_) = 0;  // calls in asking_
};

}  // namespace headrace::distributed
