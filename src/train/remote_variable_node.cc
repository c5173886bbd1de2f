#include "train/remote_variable_node.h"

#include "eager/eager_emitter.h"

namespace headrace {

StatusOr<std::vector<Tensor>> RemoteVariableNode::Read() const {
  return RunOp("ReadVariableOp", {handle_}, {{"dtype", spec_.dtype}});
}

Status RemoteVariableNode::Write(absl::Span<const Tensor> values) {
  if (!values[0].has_buffer()) return OkStatus();
  return RunOp("AssignVariableOp", {handle_, values[0]}).status();
}

}  // namespace headrace
