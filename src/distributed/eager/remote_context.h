// The client's side of eager ops on other tasks: a context on each task of a
// cluster.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "distributed/cluster.h"
#include "distributed/eager/remote_handle.h"
#include "distributed/eager/spread_calls.h"

namespace headrace::distributed {

struct RemoteOptions {
  tensorflow::ServerDef def;      // with this process as one of its tasks
  int64_t keep_alive_secs = 600;  // 0: tasks keep the context for ever
  Clock::time_point deadline = Clock::time_point::max();  // of meeting all
  // Tasks let go of all that other clients have on them.
  bool clear_existing_contexts = false;
  // Where functions are looked up before those of the process; may be null.
  std::shared_ptr<const FunctionLibrary> library;
  // What this process is for other tasks, and where state of its own parts of
  // functions is, which outlives the context. Without a worker there are no
  // such parts, for that reason.
  std::shared_ptr<Worker> worker;
  ResourceManager* resources = nullptr;
  Status no_worker;
};

// Thread-safe.
class RemoteContext : public std::enable_shared_from_this<RemoteContext> {
 public:
  // Waits for the other tasks of the cluster, and makes a context on each.
  static StatusOr<std::shared_ptr<RemoteContext>> Connect(
      const RemoteOptions& options, const Dial& dial);
  // As Close.
  ~RemoteContext();

  // The cluster is another one from now on, of the same task. Tasks that are
  // new in it, have another address or were started anew get contexts; those
  // that it does not have any more lose theirs. Nothing changes on an error:
  // InvalidArgument for another task, else what tasks say.
  Status Update(const RemoteOptions& options);
  // Of the other tasks, by the names that the cluster gives them.
  std::vector<tensorflow::DeviceAttributes> devices() const;
  // What the name leaves open is the first's. Ops are InvalidArgument where no
  // task has it.
  StatusOr<std::shared_ptr<RemotePlace>> PlaceOf(const std::string& device);
  // For functions that name tasks within.
  const std::shared_ptr<SpreadCalls>& calls() const { return calls_; }
  // Another function may have the name from now on.
  Status RemoveFunction(const std::string& name);
  // Whether the task answers; what it says else. InvalidArgument, with
  // upstream's text, where there is no such task.
  Status CheckAlive(const std::string& task);
  // Whether a task answers at an address, of the cluster or not, within so
  // long; it is not waited for.
  Status Knock(const std::string& address, std::chrono::milliseconds time);
  // The contexts end; tensors that are there are not to be had any more. Waits
  // for some seconds at most.
  void Close();

  // What messages of its ops say.
  uint64_t id() const { return id_; }
  const DeviceName& own() const { return own_; }
  int64_t NextOp() { return next_op_.fetch_add(1); }
  // FailedPrecondition behind Close; InvalidArgument for a device of a task
  // that the cluster does not have any more.
  Status CheckOpen(const RemoteTask& task, const std::string& device);

 private:
  using Task = std::shared_ptr<RemoteTask>;
  using Tasks = std::vector<Task>;

  RemoteContext() = default;
  Tasks tasks() const;
  Status MakeContexts(const RemoteOptions& options, const Tasks& tasks,
                      const Tasks& made, uint64_t view);
  Status UpdateContexts(const RemoteOptions& options, const Tasks& tasks,
                        const Tasks& kept, uint64_t view);
  Tasks StillThere(const Tasks& tasks);
  Status BeginKeepingAlive(int64_t seconds);
  void KeepAlive();
  void CloseContexts(const Tasks& tasks);
  Status MakeOwnSession(const RemoteOptions& options);
  std::string session() const { return SessionOfEager(id_); }

  uint64_t id_ = 0;
  DeviceName own_;
  std::shared_ptr<const FunctionLibrary> library_;
  std::shared_ptr<Worker> worker_;
  std::shared_ptr<SpreadCalls> calls_;
  std::atomic<int64_t> next_op_{1};
  Mutex updating_;  // comes before mutex_
  uint64_t view_ ABSL_GUARDED_BY(updating_) = 0;
  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Cluster> cluster_ ABSL_GUARDED_BY(mutex_);
  Tasks tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::milliseconds alive_every_ ABSL_GUARDED_BY(mutex_){};
  std::thread keeper_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
