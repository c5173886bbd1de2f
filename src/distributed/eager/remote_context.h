// The client's side of eager ops on other tasks: a context on each task of a
// cluster, and what this process holds of it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/messages.h"
#include "op/remote_place.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/protobuf/eager_service.pb.h"

namespace headrace::distributed {

class RemoteHandle;

struct RemoteOptions {
  tensorflow::ServerDef def;  // with this process as one of its tasks
  int64_t keep_alive_secs = 600;
  Clock::time_point deadline = Clock::time_point::max();  // of meeting all
};

// Thread-safe.
class RemoteContext : public std::enable_shared_from_this<RemoteContext> {
 public:
  // Waits for the other tasks of the cluster, and makes a context on each.
  static StatusOr<std::shared_ptr<RemoteContext>> Connect(
      const RemoteOptions& options, const Dial& dial);
  // As Close.
  ~RemoteContext();

  // Of the other tasks, by the names that the cluster gives them.
  std::vector<tensorflow::DeviceAttributes> devices() const;
  // What the name leaves open is the first's. Ops are InvalidArgument where no
  // task has it.
  StatusOr<std::shared_ptr<RemotePlace>> PlaceOf(const std::string& device);
  // Whether the task answers; what it says else. InvalidArgument where there is
  // no such task.
  Status CheckAlive(const DeviceName& task);
  // The contexts end; tensors that are there are not to be had any more. Waits
  // for some seconds at most.
  void Close();

 private:
  friend class DevicePlace;
  friend class RemoteHandle;
  struct Task;
  struct Run;

  RemoteContext() = default;
  Status MeetTasks(Clock::time_point deadline);
  Status MakeContexts(const RemoteOptions& options);
  Status KeepAlive(std::chrono::milliseconds every);
  int64_t NextOp() { return next_op_.fetch_add(1); }
  // An output on its way here.
  struct Coming {
    size_t output;
    std::string key;
  };
  Status CheckOpen(const tensorflow::DeviceAttributes& device);
  Status AddBefore(Task& task, const Run& run,
                   tensorflow::eager::EnqueueRequest* request,
                   std::vector<std::string>* fresh);
  std::vector<Coming> AddSends(const tensorflow::DeviceAttributes& device,
                               const Run& run,
                               tensorflow::eager::EnqueueRequest* request);
  std::shared_ptr<const RemoteHandle> HandleOf(
      Task& task, const tensorflow::DeviceAttributes& device, const Run& run,
      size_t output);
  Status Execute(Task& task, const tensorflow::DeviceAttributes& device,
                 Run& run);

  uint64_t id_ = 0;
  std::shared_ptr<Cluster> cluster_;
  DeviceName own_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::atomic<int64_t> next_op_{1};
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread keeper_ ABSL_GUARDED_BY(mutex_);
};

// The device of another task that has the tensor, which came from there or is a
// name of what lies there; empty for others.
std::string RemoteDeviceOf(const Tensor& t);

}  // namespace headrace::distributed
