// Functions in which loops or branches have parts for other tasks than their
// own: such a function runs op by op, each op where it is to run, and this
// process drives it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/device_name.h"
#include "graph/function.h"
#include "op/remote_place.h"

namespace headrace::distributed {

// How the ops of such functions run: where `place` is (null: this process) or
// their resources are. What is left of them is told by false: the op runs as
// ops of eager code do.
struct SteppedCalls {
  // Where calls lie: at the function's place, or, where not, where their
  // resources are.
  bool at_place = false;
  // Where a node of that device runs, of a function that lies at `otherwise`.
  std::function<StatusOr<std::shared_ptr<RemotePlace>>(
      const std::string& device, const std::shared_ptr<RemotePlace>& otherwise)>
      place_of;
  // Ops that call functions.
  std::function<StatusOr<bool>(
      const ResolvedOp& op, const std::shared_ptr<RemotePlace>& place,
      absl::Span<const Tensor* const> inputs, absl::Span<Tensor> outputs)>
      run;
};

// Calls a function that lies at `place`. Nodes run in the order of the graph,
// those alone that results or effects need. Unimplemented for a graph with
// TensorFlow 1's loops. As CheckStop allows.
Status RunStepped(const Function& function,
                  const std::shared_ptr<RemotePlace>& place,
                  const SteppedCalls& calls, std::vector<Tensor> inputs,
                  std::vector<Tensor>* outputs);

// Whether each call in a function, and in those that it calls, that names
// functions with a node for another task than `task` can be driven: a loop, a
// branch or a call. Else Unimplemented, which names both.
Status CheckSteps(const Function& function, const FunctionLibrary* library,
                  const DeviceName& task);

}  // namespace headrace::distributed
