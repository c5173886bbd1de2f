#include "command/graph/prune.h"

#include "base/hash_map.h"
#include "command/show/graph_facts.h"
#include "graph/called_names.h"

namespace headrace::command {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

StatusOr<int> KeepNeeded(const std::vector<std::string>& outputs,
                         GraphDef* graph) {
  HashMap<std::string, const NodeDef*> nodes;
  for (const NodeDef& n : graph->node()) nodes.emplace(n.name(), &n);
  HashSet<const NodeDef*> needed;
  std::vector<const NodeDef*> todo;
  const auto need = [&](const std::string& input, StringView reader) -> Status {
    auto it = nodes.find(NodeOfInput(input));
    if (it == nodes.end()) {
      return NotFound(reader.empty() ? "" : absl::StrCat("node ", reader, ": "),
                      "the graph has no node ", NodeOfInput(input));
    }
    if (needed.insert(it->second).second) todo.push_back(it->second);
    return OkStatus();
  };
  for (const std::string& name : outputs) {
    HR_RETURN_IF_ERROR(need(name, ""));
  }
  while (!todo.empty()) {
    const NodeDef* n = todo.back();
    todo.pop_back();
    for (const std::string& input : n->input()) {
      HR_RETURN_IF_ERROR(need(input, n->name()));
    }
  }
  const int before = graph->node_size();
  google::protobuf::RepeatedPtrField<NodeDef> kept;
  for (NodeDef& n : *graph->mutable_node()) {
    if (needed.contains(&n)) *kept.Add() = std::move(n);
  }
  graph->mutable_node()->Swap(&kept);
  DropUnusedFunctions(graph);
  return before - graph->node_size();
}

void DropUnusedFunctions(GraphDef* graph) {
  auto* library = graph->mutable_library();
  HashMap<std::string, tensorflow::FunctionDef*> functions;
  for (auto& f : *library->mutable_function()) {
    functions.emplace(f.signature().name(), &f);
  }
  HashMap<std::string, std::string> gradients;
  for (const auto& g : library->gradient()) {
    gradients.emplace(g.function_name(), g.gradient_func());
  }
  HashSet<std::string> named;
  std::vector<std::string> todo;
  const auto name_one = [&](const std::string& name) {
    if (functions.contains(name) && named.insert(name).second) {
      todo.push_back(name);
    }
  };
  const auto name_all = [&](auto* nodes) {
    for (NodeDef& n : *nodes) {
      EachCalledName(&n, [&](std::string* name) { name_one(*name); });
    }
  };
  name_all(graph->mutable_node());
  while (!todo.empty()) {
    const std::string name = todo.back();
    todo.pop_back();
    name_all(functions.at(name)->mutable_node_def());
    if (auto it = gradients.find(name); it != gradients.end()) {
      name_one(it->second);
    }
  }
  tensorflow::FunctionDefLibrary kept;
  for (auto& f : *library->mutable_function()) {
    if (named.contains(f.signature().name())) {
      *kept.add_function() = std::move(f);
    }
  }
  for (const auto& g : library->gradient()) {
    if (named.contains(g.function_name())) *kept.add_gradient() = g;
  }
  if (kept.function_size() == 0 && kept.gradient_size() == 0) {
    graph->clear_library();
  } else {
    library->Swap(&kept);
  }
}

}  // namespace headrace::command
