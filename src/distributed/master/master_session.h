// A client's graph on the tasks of a cluster.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "distributed/master/tasks.h"
#include "distributed/partition.h"
#include "distributed/worker/paused_run.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/master.pb.h"

namespace headrace::distributed {

// What a run is asked.
struct StepRequest {
  std::vector<std::pair<std::string, Tensor>> feeds;  // by "node:output"
  std::vector<std::string> fetches, targets;
  tensorflow::RunOptions options;
};

class Step;

// Thread-safe; steps overlap.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  // Makes a session of the same name on each task.
  static StatusOr<std::shared_ptr<MasterSession>> Make(
      std::shared_ptr<Worker> worker,
      const tensorflow::CreateSessionRequest& request,
      Clock::time_point deadline);

  // The same over sessions that are there, under that name, on the tasks that
  // `filters` stand for and on the worker's own; they stay when it closes.
  static StatusOr<std::shared_ptr<MasterSession>> Join(
      std::shared_ptr<Worker> worker, const std::string& session,
      tensorflow::GraphDef graph, const std::vector<std::string>& filters,
      Clock::time_point deadline);

  const std::string& handle() const { return handle_; }
  const std::vector<Task>& tasks() const { return tasks_; }
  int64_t version() const;
  // The new version.
  StatusOr<int64_t> Extend(const tensorflow::ExtendSessionRequest& request);

  Status Run(StepRequest request, std::vector<Tensor>* fetched,
             tensorflow::RunMetadata* metadata);
  // The same of a step that holds no thread while it waits: what ends it, with
  // `ended` to be called once, perhaps at once. Null, and nothing is begun,
  // where a step needs a thread: as one that never ran, one with a deadline,
  // one that may take long here.
  using Ended = std::function<void(const Status&, std::vector<Tensor> fetched)>;
  std::shared_ptr<ClientCall> TryBegin(StepRequest& request, const Later& later,
                                       Ended ended);

  // A run in parts: what it will be fed, and what is to be fetched from it.
  StatusOr<std::string> SetUpPartialRun(StepRequest request);
  Status RunPart(const std::string& run, StepRequest request,
                 std::vector<Tensor>* fetched);

  StatusOr<int64_t> MakeCallable(const tensorflow::CallableOptions& options);
  Status RunCallable(int64_t callable, std::vector<Tensor> feeds,
                     std::vector<Tensor>* fetched,
                     tensorflow::RunMetadata* metadata);
  Status ReleaseCallable(int64_t callable);

  // Steps under way end; the sessions of the tasks are deleted.
  void Close();

 private:
  struct PlannedPart {
    const Task* task = nullptr;
    std::string graph;  // its handle there
    std::vector<std::pair<int, std::string>> feeds, fetches;
    // What the own task's part takes from it; null where that is nothing, or
    // does not come with its run.
    ExpectedKeysPtr brings, given;
  };
  struct Plan {
    std::vector<PlannedPart> parts;
    std::vector<std::pair<int, int>> fed_fetches;  // a fetch, and its feed
    std::vector<tensorflow::GraphDef> graphs;
  };
  struct PartialRun;

  MasterSession() = default;
  Status MakeWorkerSessions(Clock::time_point deadline);
  Status SetGraph(tensorflow::GraphDef def)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::shared_ptr<const Plan>> PlanOf(const StepRequest& request);
  StatusOr<std::shared_ptr<const Plan>> MakePlan(const StepRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Register(std::vector<Part> parts, Plan* plan);
  Status FindBrought(Plan* plan);
  // As planned; what it fetches is to be found in `results`, which outlive it.
  std::shared_ptr<Step> StepOf(const Plan& plan, StepRequest& request,
                               int64_t number, std::vector<Tensor>* results);
  Status RunPlan(const Plan& plan, StepRequest& request,
                 std::vector<Tensor>* fetched,
                 tensorflow::RunMetadata* metadata);
  // Tells the tasks that the step is over: those of which nothing is left to
  // end learn of it with their next step.
  void CleanUp(const Plan& plan, int64_t step, bool at_once);
  Devices AllDevices() const;

  std::shared_ptr<Worker> worker_;
  std::shared_ptr<Cluster> cluster_;
  std::string handle_;
  bool owns_sessions_ = true;
  tensorflow::ConfigProto config_;
  std::vector<Task> tasks_;
  CancellationToken closing_;
  mutable Mutex mutex_;
  tensorflow::GraphDef def_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Graph> graph_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<const Plan>> plans_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_
      ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, tensorflow::CallableOptions> callables_
      ABSL_GUARDED_BY(mutex_);
  // Of TryBegin, by their numbers: they end when this is closed.
  std::map<int64_t, std::weak_ptr<ClientCall>> begun_ ABSL_GUARDED_BY(mutex_);
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace::distributed
