#include "graph/step_labels.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/export.h"
#include "op/processor.h"
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

// The node of a step; of functions the first that has one of the name. Null
// for what plans add.
const Node* NodeOfStep(const Graph& graph, const NamedFunctions& called,
                       StringView name) {
  if (const Node* node = graph.FindNode(name)) return node;
  for (const auto& [own, f] : called) {
    if (const Node* node = f->body->FindNode(name)) return node;
  }
  return nullptr;
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

void SortByDevice(const Graph& graph, absl::Span<const std::string> devices,
                  tensorflow::StepStats* stats) {
  const NamedFunctions called = FunctionsUnder(graph);
  std::vector<tensorflow::DeviceStepStats> sorted(devices.size());
  for (auto& device : *stats->mutable_dev_stats()) {
    for (auto& step : *device.mutable_node_stats()) {
      const Node* node = NodeOfStep(graph, called, step.node_name());
      const int asked =
          node != nullptr ? ProcessorNamed(node->device()).value_or(0) : 0;
      const size_t at = static_cast<size_t>(asked) < devices.size() ? asked : 0;
      *sorted[at].add_node_stats() = std::move(step);
    }
    for (auto& one : sorted) {
      one.mutable_thread_names()->insert(device.thread_names().begin(),
                                         device.thread_names().end());
    }
  }
  stats->clear_dev_stats();
  for (size_t i = 0; i < sorted.size(); ++i) {
    // The first one is told of though it did nothing.
    if (i > 0 && sorted[i].node_stats().empty()) continue;
    sorted[i].set_device(devices[i]);
    *stats->add_dev_stats() = std::move(sorted[i]);
  }
}

}  // namespace headrace
