#include "graph/step_labels.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/framework/step_stats.pb.h"

namespace headrace {
namespace {

std::string InputsOf(const Node& node) {
  std::vector<std::string> inputs;
  for (const Edge& e : node.inputs()) {
    const std::string& name = e.node->name();
    inputs.push_back(e.index == 0 ? name : absl::StrCat(name, ":", e.index));
  }
  for (const Node* c : node.control_inputs()) {
    inputs.push_back(absl::StrCat("^", c->name()));
  }
  return absl::StrJoin(inputs, ", ");
}

}  // namespace

void LabelInputs(const Graph& graph, tensorflow::StepStats* stats) {
  for (auto& device : *stats->mutable_dev_stats()) {
    for (auto& step : *device.mutable_node_stats()) {
      std::string* label = step.mutable_timeline_label();
      const Node* node = graph.FindNode(step.node_name());
      if (node == nullptr || !absl::EndsWith(*label, "()")) continue;
      label->insert(label->size() - 1, InputsOf(*node));
    }
  }
}

}  // namespace headrace
