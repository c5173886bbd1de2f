// Functions of this process that name tasks of a cluster within: each task runs
// its part, and this process the rest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/eager/spread_function.h"
#include "distributed/eager/stepped_function.h"
#include "op/remote_place.h"

namespace headrace::distributed {

// Thread-safe.
class SpreadCalls : public RemoteTasks {
 public:
  // `worker` is this process among the tasks, with a session of that name; null
  // where it is none, which `no_worker` says why. `library`, which may be null:
  // where functions are looked up before those of the process. `place_of`: of a
  // device of another task.
  using PlaceOf = std::function<StatusOr<std::shared_ptr<RemotePlace>>(
      const std::string& device)>;
  SpreadCalls(DeviceName own, std::shared_ptr<Worker> worker, Status no_worker,
              std::string session,
              std::shared_ptr<const FunctionLibrary> library, PlaceOf place_of);

  StatusOr<bool> Call(const FunctionPtr& function,
                      const std::shared_ptr<RemotePlace>& place,
                      absl::Span<const Tensor* const> inputs,
                      std::vector<Tensor>* outputs) override;
  StatusOr<bool> Run(const ResolvedOp& op,
                     const std::shared_ptr<RemotePlace>& place,
                     absl::Span<const Tensor* const> inputs,
                     absl::Span<Tensor> outputs) override {
    return RunAt(op, place, /*at_place=*/false, inputs, outputs);
  }
  // Calls a function at `place`, with resources of any tasks, where loops or
  // branches of it take those of several: it runs in steps, of which this
  // process has no part but to choose the next one. False, and nothing is run,
  // for others, which the place calls.
  StatusOr<bool> CallInSteps(const FunctionPtr& function,
                             const std::shared_ptr<RemotePlace>& place,
                             absl::Span<const Tensor* const> inputs,
                             std::vector<Tensor>* outputs);
  // What is known of functions and of the cluster is not so any more.
  void Clear();
  // Functions are not looked at any more.
  void Close();

 private:
  // A node that names a task, for messages; empty where none does.
  StatusOr<std::string> NodeElsewhere(const FunctionPtr& function,
                                      const DeviceName& task);
  StatusOr<std::shared_ptr<SpreadFunction>> PlanOf(
      const FunctionPtr& function, const std::string& standard,
      const std::vector<KeptArgument>& arguments);
  DeviceName TaskOf(const std::shared_ptr<RemotePlace>& place) const;
  // `at_place`: as SteppedCalls' (of the others, too).
  SteppedCalls Stepping(bool at_place);
  StatusOr<bool> RunAt(const ResolvedOp& op,
                       const std::shared_ptr<RemotePlace>& place, bool at_place,
                       absl::Span<const Tensor* const> inputs,
                       absl::Span<Tensor> outputs);
  // A function of a loop or branch that lies at `place`.
  Status CallPart(const FuncRef& called,
                  const std::shared_ptr<RemotePlace>& place, bool at_place,
                  std::vector<Tensor> inputs, std::vector<Tensor>* outputs);
  // Runs a loop or branch of which this process calls the functions.
  Status Drive(const ResolvedOp& op, const std::shared_ptr<RemotePlace>& place,
               bool at_place, absl::Span<const Tensor* const> inputs,
               absl::Span<Tensor> outputs);

  const DeviceName own_;
  const std::shared_ptr<Worker> worker_;
  const Status no_worker_;
  const std::string session_;
  const std::shared_ptr<const FunctionLibrary> library_;
  const PlaceOf place_of_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // By function and task: NodeElsewhere.
  std::map<std::string, std::string> elsewhere_ ABSL_GUARDED_BY(mutex_);
  // By function, place and what lies where.
  std::map<std::string, std::shared_ptr<SpreadFunction>> plans_
      ABSL_GUARDED_BY(mutex_);
  // By the same: the body of a function that runs in steps, null for others.
  std::map<std::string, std::shared_ptr<const Function>> in_steps_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace headrace::distributed
