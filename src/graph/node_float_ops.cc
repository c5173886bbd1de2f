#include "graph/node_float_ops.h"

#include "op/float_ops.h"

namespace headrace {

std::optional<int64_t> FloatOpsOf(const Node& node) {
  absl::InlinedVector<const Shape*, 4> inputs, outputs;
  for (const Edge& e : node.inputs()) {
    inputs.push_back(&e.node->output_shape(e.index));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.push_back(&node.output_shape(i));
  }
  return CountFloatOps(node.op(), inputs, outputs);
}

}  // namespace headrace
