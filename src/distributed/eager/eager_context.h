// What a remote client of eager ops has on a task: tensors, variables and
// functions, and the ops that it has run here.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "distributed/eager/handles.h"
#include "distributed/eager/spread_function.h"
#include "distributed/master/many_steps.h"
#include "distributed/worker/worker.h"
#include "headrace/eager.pb.h"
#include "runtime/op_context.h"
#include "tensorflow/core/protobuf/eager_service.pb.h"

namespace headrace::distributed {

// Thread-safe: calls overlap, and the items of one call follow each other.
class EagerContext {
 public:
  using Clock = std::chrono::steady_clock;
  // The number of operations whose outputs go with the answer.
  static constexpr int64_t kNoOp = -1;

  // With a session of the worker's for variables and for meeting other tasks.
  // What Cluster::Make and Worker::CreateSession report.
  static StatusOr<std::shared_ptr<EagerContext>> Make(
      std::shared_ptr<Worker> worker, std::shared_ptr<KeptBytes> kept_bytes,
      const tensorflow::eager::CreateContextRequest& request);
  // As Close.
  ~EagerContext();

  // Does the items in their order, up to the first error. What `token` says
  // ends what waits.
  Status Enqueue(const tensorflow::eager::EnqueueRequest& request,
                 const CancellationToken* token,
                 tensorflow::eager::EnqueueResponse* response);
  // Does what is first, and the calls as far as they may begin.
  Status RunCalls(const RunCallsRequest& request, ManySteps& calls);
  // A part of a function that another task runs: it meets the other parts in
  // their step.
  Status RunComponent(
      const tensorflow::eager::RunComponentFunctionRequest& request,
      const CancellationToken* token,
      tensorflow::eager::RunComponentFunctionResponse* response);
  // The cluster is another one from now on.
  Status Update(const tensorflow::eager::UpdateContextRequest& request);

  // It is used: another `keep_alive` begins.
  void Touch() { touched_ = Clock::now().time_since_epoch().count(); }
  bool forgotten(Clock::time_point now) const;
  uint64_t view() const { return view_; }
  // What runs ends, and all that it has is let go. Twice is once.
  void Close();
  const Handles& handles() const { return *handles_; }

 private:
  using Operation = tensorflow::eager::Operation;

  EagerContext() = default;
  Status Do(const tensorflow::eager::QueueItem& item,
            tensorflow::eager::QueueResponse* response);
  Status Run(const Operation& operation,
             tensorflow::eager::QueueResponse* response);
  // Ends of edges between devices; nullopt for other ops.
  StatusOr<bool> RunEnd(const Operation& operation,
                        const std::vector<Tensor>& inputs,
                        std::vector<Tensor>* outputs);
  Status RunOp(const Operation& operation, std::vector<Tensor> inputs,
               std::vector<Tensor>* outputs);
  // `spread`: where it takes what lies on other tasks, which `kept` names.
  struct Inputs {
    std::vector<Tensor> tensors;  // those that are here
    std::vector<KeptArgument> kept;
    bool spread = false;
  };
  StatusOr<Inputs> InputsOf(const Operation& operation);
  StatusOr<std::vector<Tensor>> InputsHere(const Operation& operation);
  Status RunSpread(const Operation& operation, Inputs inputs,
                   std::vector<Tensor>* outputs);
  StatusOr<DeviceName> DeviceOf(const std::string& name) const;
  Status Register(const tensorflow::eager::RegisterFunctionOp& item);
  Status CheckRefused(const std::string& function);
  Status Receive(const tensorflow::eager::SendTensorOp& item);

  std::shared_ptr<Worker> worker_;
  std::string session_;  // of the worker
  Worker::SessionState state_;
  DeviceName task_;  // as the client calls it
  std::shared_ptr<StepRendezvous> rendezvous_;
  int64_t id_ = 0;
  std::atomic<uint64_t> view_{0};
  Clock::duration keep_alive_{};  // 0: for ever
  std::atomic<Clock::rep> touched_{0};
  CancellationToken closing_;
  std::unique_ptr<OpContext> ops_;
  std::shared_ptr<Handles> handles_;
  Mutex mutex_;
  // Functions that could not be added, and why.
  std::map<std::string, Status> refused_ ABSL_GUARDED_BY(mutex_);
  // By name, and what lies where.
  std::map<std::string, std::shared_ptr<SpreadFunction>> spread_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
