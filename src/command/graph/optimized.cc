#include "command/graph/optimized.h"

#include <map>

#include "command/graph/prune.h"
#include "command/show/graph_facts.h"
#include "graph/export.h"
#include "graph/import.h"
#include "op/registry.h"
#include "runtime/program.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;

// A program as the nodes of a new graph.
class ProgramWriter {
 public:
  ProgramWriter(const Program& program, std::vector<std::string> names,
                Graph* graph)
      : program_(program), names_(std::move(names)), graph_(graph) {}

  Status Write(const std::vector<Node*>& feeds,
               const std::vector<std::string>& outputs) {
    // Placeholders and outputs have their names before all others.
    for (size_t i = 0; i < feeds.size(); ++i) {
      HR_ASSIGN_OR_RETURN(
          Node * n, graph_->AddNode(feeds[i]->name(), feeds[i]->op_ptr(), {}));
      edges_[program_.feeds[i]] = {n, 0};
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      reserved_.emplace(outputs[i], program_.fetches[i]);
    }
    for (const Call& call : program_.calls) HR_RETURN_IF_ERROR(Add(call));
    for (size_t i = 0; i < outputs.size(); ++i) {
      HR_RETURN_IF_ERROR(AddOutput(outputs[i], program_.fetches[i]));
    }
    return OkStatus();
  }

 private:
  // A name for the node that makes `v`: an output's is kept for what makes it.
  std::string NameFor(const std::string& wanted, ValueId v) {
    if (!IsValidNodeName(wanted)) return graph_->UniqueName("node");
    auto it = reserved_.find(wanted);
    if (it == reserved_.end() || it->second == v) {
      return graph_->UniqueName(wanted);
    }
    return graph_->UniqueName(absl::StrCat(wanted, "/computed"));
  }

  StatusOr<Edge> EdgeOfValue(ValueId v) {
    if (auto it = edges_.find(v); it != edges_.end()) return it->second;
    const Tensor& constant = program_.values[v].constant;
    if (!constant.has_buffer()) return Internal("a value that nothing makes");
    HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("Const"));
    HR_ASSIGN_OR_RETURN(
        ResolvedOpPtr op,
        ResolveOp(*def, {},
                  {{"dtype", constant.dtype()}, {"value", constant}}));
    HR_ASSIGN_OR_RETURN(
        Node * n, graph_->AddNode(NameFor(names_[v], v), std::move(op), {}));
    return edges_[v] = {n, 0};
  }

  Status Add(const Call& call) {
    if (FindOp(call.op->name()) != &call.op->def() ||
        call.op->name().starts_with('_')) {
      return Unimplemented("node ", call.name, " (", call.op->name(),
                           ") has no form in graphs any more");
    }
    std::vector<Edge> inputs;
    for (const ValueId v : call.inputs) {
      HR_ASSIGN_OR_RETURN(inputs.emplace_back(), EdgeOfValue(v));
    }
    // Effects stay in their order.
    std::vector<Node*> controls;
    if (call.effect && last_effect_ != nullptr) {
      controls.push_back(last_effect_);
    }
    HR_ASSIGN_OR_RETURN(
        Node * n, graph_->AddNode(NameFor(call.name, call.outputs.empty()
                                                         ? kNoValue
                                                         : call.outputs[0]),
                                  call.op, inputs, controls));
    if (call.effect) last_effect_ = n;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      edges_[call.outputs[i]] = {n, static_cast<int>(i)};
    }
    return OkStatus();
  }

  Status AddOutput(const std::string& name, ValueId v) {
    HR_ASSIGN_OR_RETURN(const Edge e, EdgeOfValue(v));
    if (e.index == 0 && e.node->name() == name) return OkStatus();
    HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("Identity"));
    const DType type = BaseType(e.node->output_type(e.index));
    HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, ResolveOp(*def, {&type, 1}, {}));
    return graph_->AddNode(name, std::move(op), {&e, 1}).status();
  }

  const Program& program_;
  const std::vector<std::string> names_;  // by value: of what made it
  Graph* const graph_;
  std::map<ValueId, Edge> edges_;
  std::map<std::string, ValueId> reserved_;  // outputs
  Node* last_effect_ = nullptr;
};

std::vector<std::string> NamesOfValues(const Program& p) {
  std::vector<std::string> names(p.values.size(), "constant");
  for (const Call& call : p.calls) {
    for (const ValueId v : call.outputs) names[v] = call.name;
  }
  return names;
}

}  // namespace

StatusOr<FrozenGraph> KeptGraph(const Source& source,
                                std::vector<std::string> outputs) {
  FrozenGraph kept;
  kept.graph = source.graph->graph_def();
  if (outputs.empty()) {
    for (const auto* n : LastNodes(kept.graph)) outputs.push_back(n->name());
  }
  HR_RETURN_IF_ERROR(KeepNeeded(outputs, &kept.graph).status());
  for (const auto& n : kept.graph.node()) {
    if (IsPlaceholder(n)) kept.inputs.push_back(n.name());
  }
  kept.outputs = std::move(outputs);
  return kept;
}

StatusOr<GraphDef> Optimized(const GraphDef& graph,
                             const std::vector<std::string>& outputs) {
  auto imported = std::make_shared<Graph>();
  HR_RETURN_IF_ERROR(ImportGraphDef(graph, {}, imported.get(), nullptr));
  std::vector<Edge> feeds, fetches;
  std::vector<Node*> placeholders;
  for (int i = 0; i < imported->num_nodes(); ++i) {
    Node* n = imported->node(i);
    if (!n->def().Is(OpRole::kPlaceholder) || n->num_inputs() > 0) continue;
    placeholders.push_back(n);
    feeds.push_back({n, 0});
  }
  std::vector<std::string> names;
  for (const std::string& name : outputs) {
    HR_ASSIGN_OR_RETURN(const Edge e, imported->FindOutput(name));
    fetches.push_back(e);
    names.push_back(e.index == 0 ? e.node->name()
                                 : absl::StrCat(e.node->name(), "_", e.index));
  }
  HR_ASSIGN_OR_RETURN(
      Program program,
      MakeProgram(*imported, feeds, fetches, {}, imported->library().get()));
  std::vector<std::string> value_names = NamesOfValues(program);
  FoldConstants(program);
  MergeEqualCalls(program);
  DropUnused(program);
  value_names.resize(program.values.size(), "constant");
  auto made = std::make_shared<Graph>();
  for (const std::string& name : imported->library()->Names()) {
    HR_RETURN_IF_ERROR(made->library()->Add(imported->library()->Find(name)));
  }
  HR_RETURN_IF_ERROR(ProgramWriter(program, std::move(value_names), made.get())
                         .Write(placeholders, names));
  GraphDef def;
  HR_RETURN_IF_ERROR(ExportGraph(*made, {}, &def));
  *def.mutable_versions() = graph.versions();
  DropUnusedFunctions(&def);
  return def;
}

}  // namespace headrace::command
