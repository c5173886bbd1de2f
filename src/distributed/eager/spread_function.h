// A function whose arguments lie on several tasks: it is written out into a
// graph, of which each task runs what uses its resources.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/master/master_session.h"
#include "graph/function.h"

namespace headrace::distributed {

// The session of a worker that a context of that number has.
std::string SessionOfEager(uint64_t context);

// Whether a node's device is on another task than that.
bool NamesOther(const std::string& device, const DeviceName& task);
// A call that lies on one task as a whole, and is given a function with such a
// node, which is described.
Status CallLiesElsewhere(StringView call, const DeviceName& task,
                         StringView node);

// A tensor that a task keeps, or one that is here (no task).
struct KeptArgument {
  DeviceName task;
  int64_t op = 0;
  int output = 0;
  bool here() const { return !task.job; }
};

// Thread-safe.
class SpreadFunction {
 public:
  // `session`: of that name on each of the tasks. Unimplemented where one of
  // them runs TensorFlow, which does not know such sessions, and where
  // functions of calls that are neither loops nor branches (those of datasets)
  // name other tasks than the call, as loops and branches may where `may_step`.
  // Nodes that name no device run on `standard`, or on the worker if it is
  // empty.
  static StatusOr<std::shared_ptr<SpreadFunction>> Make(
      const std::shared_ptr<Worker>& worker, const std::string& session,
      const Function& function, const FunctionLibrary* library,
      const std::vector<KeptArgument>& arguments,
      const std::string& standard = "", bool may_step = false);

  // The body, where it is to run in steps at `standard`, as `stepped`; else
  // null.
  static StatusOr<std::shared_ptr<const Function>> InSteps(
      const Function& function, const FunctionLibrary* library,
      const std::vector<KeptArgument>& arguments, const DeviceName& own,
      const DeviceName& standard);

  // The body, where loops or branches of it name other tasks than they lie on,
  // or take resources of several: it is to run in steps (stepped_function.h).
  // Else null, and Run runs it.
  const std::shared_ptr<const Function>& stepped() const { return stepped_; }
  // Of each result the argument that it is, or -1. A name of another task's
  // resource would be none of its own here. Empty without `may_step`.
  const std::vector<int>& passed() const { return passed_; }
  // `inputs`: the arguments that are here, in their order. `outputs`: but those
  // that are arguments.
  Status Run(std::vector<Tensor> inputs, std::vector<Tensor>* outputs);

 private:
  std::shared_ptr<const Function> stepped_;
  std::vector<int> passed_;
  std::shared_ptr<MasterSession> session_;
  std::vector<std::string> feeds_, fetches_, targets_;
};

}  // namespace headrace::distributed
