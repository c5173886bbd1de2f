#include "command/graph/frozen.h"

#include <map>
#include <set>

#include "absl/strings/strip.h"
#include "autodiff/function_gradient.h"
#include "command/graph/freeze_variables.h"
#include "command/graph/prune.h"
#include "command/model/callable.h"
#include "command/show/graph_facts.h"
#include "formats/checkpoint_reader.h"
#include "graph/export.h"
#include "op/registry.h"
#include "op/resource.h"
#include "saved_model/signature.h"
#include "tensor/tensor_proto.h"
#include "train/checkpoint_tensor.h"

namespace headrace::command {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

std::set<std::string> NamesOf(const GraphDef& graph) {
  std::set<std::string> names;
  for (const NodeDef& n : graph.node()) names.insert(n.name());
  return names;
}

std::string FreeName(const std::string& wanted, std::set<std::string>* names) {
  std::string name = IsValidNodeName(wanted) ? wanted : "output";
  for (int i = 1; !names->insert(name).second; ++i) {
    name = absl::StrCat(wanted, "_", i);
  }
  return name;
}

// Gives nodes new names, wherever they are read.
void RenameNodes(const std::map<std::string, std::string>& names,
                 GraphDef* graph) {
  for (NodeDef& n : *graph->mutable_node()) {
    if (auto it = names.find(n.name()); it != names.end()) {
      n.set_name(it->second);
    }
    for (std::string& input : *n.mutable_input()) {
      const std::string node = NodeOfInput(input);
      auto it = names.find(node);
      if (it == names.end()) continue;
      input.replace(input.starts_with('^') ? 1 : 0, node.size(), it->second);
    }
    auto places = n.mutable_attr()->find(std::string(kLocationAttr));
    if (places == n.mutable_attr()->end()) continue;
    for (auto& place : *places->second.mutable_list()->mutable_s()) {
      const std::string old(absl::StripPrefix(place, "loc:@"));
      auto it = names.find(old);
      if (it != names.end()) place = absl::StrCat("loc:@", it->second);
    }
  }
}

// What a capture of a signature is worth.
StatusOr<Tensor> ValueOf(const Value& capture, const std::string& name,
                         const Source& source) {
  if (capture.dtype() != DType::kResource) return capture.tensor();
  const StatusOr<std::shared_ptr<Variable>> variable =
      ResourceAs<Variable>(capture.tensor(), &DefaultResources());
  if (!variable.ok()) {
    return Unimplemented(
        source.given, ": the signature reads ", name,
        ", a table or other state that no constant stands for");
  }
  return (*variable)->Read(name);
}

void MakePlaceholder(DType dtype, const Shape& shape, NodeDef* n) {
  n->set_op("Placeholder");
  n->clear_input();
  n->clear_attr();
  (*n->mutable_attr())["dtype"].set_type(
      static_cast<tensorflow::DataType>(dtype));
  ShapeToProto(shape, (*n->mutable_attr())["shape"].mutable_shape());
}

class ModelFreezer {
 public:
  ModelFreezer(const Source& source, const ModelSignature& signature)
      : source_(source), signature_(signature) {}

  StatusOr<FrozenGraph> Freeze() {
    const Function& f = *signature_.function->function();
    HR_ASSIGN_OR_RETURN(clone_, CloneInlined(f, f.body->library().get()));
    GraphDef& graph = made_.graph;
    HR_RETURN_IF_ERROR(ExportGraph(*clone_->body, {}, &graph));
    for (auto& n : *graph.mutable_node()) by_name_[n.name()] = &n;
    HR_RETURN_IF_ERROR(SetArguments());
    AddOutputs();
    HR_RETURN_IF_ERROR(KeepNeeded(made_.outputs, &graph).status());
    HR_RETURN_IF_ERROR(FreezeNeeded());
    HR_RETURN_IF_ERROR(KeepAll());
    RenameNodes(renamed_, &graph);
    return std::move(made_);
  }

 private:
  size_t NumInputs() const { return signature_.inputs.size(); }

  Status SetArguments() {
    for (size_t i = 0; i < NumInputs(); ++i) {
      const Node* arg = clone_->args[i];
      MakePlaceholder(arg->output_type(0), arg->output_shape(0),
                      by_name_.at(arg->name()));
      made_.inputs.push_back(arg->name());
    }
    return OkStatus();
  }

  // Nodes that have an output's name get others; arguments keep theirs.
  std::map<std::string, std::string> MakeRoom(std::set<std::string>* names) {
    std::set<std::string> arguments;
    for (const Node* arg : clone_->args) arguments.insert(arg->name());
    std::map<std::string, std::string> moved;
    for (const std::string& wanted : signature_.outputs) {
      if (!names->contains(wanted) || arguments.contains(wanted)) continue;
      moved[wanted] = FreeName(wanted, names);
      names->erase(wanted);
    }
    RenameNodes(moved, &made_.graph);
    return moved;
  }

  void AddOutputs() {
    std::set<std::string> names = NamesOf(made_.graph);
    const std::map<std::string, std::string> moved = MakeRoom(&names);
    for (size_t i = 0; i < signature_.outputs.size(); ++i) {
      const Edge& e = clone_->results[i];
      NodeDef* n = made_.graph.add_node();
      n->set_name(FreeName(signature_.outputs[i], &names));
      n->set_op("Identity");
      auto it = moved.find(e.node->name());
      n->add_input(absl::StrCat(it == moved.end() ? e.node->name() : it->second,
                                ":", e.index));
      (*n->mutable_attr())["T"].set_type(static_cast<tensorflow::DataType>(
          BaseType(e.node->output_type(e.index))));
      made_.outputs.push_back(n->name());
    }
    // Inputs get their names where those are free, once all is known.
    for (size_t i = 0; i < NumInputs(); ++i) {
      const std::string& wanted = signature_.inputs[i];
      if (made_.inputs[i] == wanted || !IsValidNodeName(wanted) ||
          !names.insert(wanted).second) {
        continue;
      }
      renamed_[made_.inputs[i]] = wanted;
      made_.inputs[i] = wanted;
    }
  }

  // Captures that nothing needs have no need of a value.
  Status FreezeNeeded() {
    const std::set<std::string> left = NamesOf(made_.graph);
    const std::vector<Value>& captures = signature_.function->captures();
    std::map<std::string, Tensor> values;
    for (size_t i = 0; i < captures.size(); ++i) {
      const std::string& name = clone_->args[NumInputs() + i]->name();
      if (!left.contains(name)) continue;
      HR_ASSIGN_OR_RETURN(values[name], ValueOf(captures[i], name, source_));
    }
    return FreezeVariables(values, &made_.graph);
  }

  // Placeholders stay, whether or not they are read.
  Status KeepAll() {
    GraphDef& graph = made_.graph;
    std::set<std::string> left = NamesOf(graph);
    for (size_t i = 0; i < NumInputs(); ++i) {
      const Node* arg = clone_->args[i];
      if (!left.insert(arg->name()).second) continue;
      NodeDef* n = graph.add_node();
      n->set_name(arg->name());
      MakePlaceholder(arg->output_type(0), arg->output_shape(0), n);
    }
    DropUnusedFunctions(&graph);
    return OkStatus();
  }

  const Source& source_;
  const ModelSignature& signature_;
  std::shared_ptr<Function> clone_;
  FrozenGraph made_;
  std::map<std::string, NodeDef*> by_name_;
  std::map<std::string, std::string> renamed_;
};

// The name under which a checkpoint has a variable; empty: the node is none.
std::string VariableName(const NodeDef& n) {
  const OpDef* op = FindOp(n.op());
  if (op == nullptr || !op->inputs.empty() || op->outputs.size() != 1)
    return "";
  const bool is_variable = n.op() == "VarHandleOp" || op->outputs[0].is_ref;
  if (!is_variable) return "";
  auto shared = n.attr().find("shared_name");
  return shared != n.attr().end() && !shared->second.s().empty()
             ? shared->second.s()
             : n.name();
}

Status ReadVariables(const Source& graph, const Source* checkpoint,
                     const GraphDef& def,
                     std::map<std::string, Tensor>* values) {
  std::unique_ptr<CheckpointReader> reader;
  for (const NodeDef& n : def.node()) {
    const std::string name = VariableName(n);
    if (name.empty()) continue;
    if (checkpoint == nullptr) {
      return InvalidArgument(graph.given, ": it reads the variable ", name,
                             ": give its values with --checkpoint");
    }
    if (reader == nullptr) {
      HR_ASSIGN_OR_RETURN(
          reader, CheckpointReader::Open(checkpoint->fs, checkpoint->path));
    }
    if (!reader->Contains(name)) {
      return NotFound(checkpoint->given, ": the checkpoint has no tensor ",
                      name, ", which ", graph.given, " reads");
    }
    HR_ASSIGN_OR_RETURN((*values)[n.name()],
                        ReadCheckpointTensor(*reader, name));
  }
  return OkStatus();
}

}  // namespace

StatusOr<FrozenGraph> FreezeModel(const Source& source, const Arguments& args) {
  LoadedModel::Options options;
  if (args.Has("tag_set")) options.tags = args.List("tag_set");
  HR_ASSIGN_OR_RETURN(const auto model,
                      LoadedModel::Load(source.folder, options));
  HR_ASSIGN_OR_RETURN(const auto signatures, SignaturesOf(*model));
  std::vector<std::string> keys;
  for (const auto& [key, signature] : signatures) keys.push_back(key);
  HR_ASSIGN_OR_RETURN(const std::string key,
                      ChosenSignature(args, keys, source));
  return ModelFreezer(source, signatures.at(key)).Freeze();
}

StatusOr<FrozenGraph> FreezeGraph(const Source& source,
                                  const Source* checkpoint,
                                  std::vector<std::string> outputs) {
  FrozenGraph made;
  made.graph = source.graph->graph_def();
  if (outputs.empty()) {
    for (const NodeDef* n : LastNodes(made.graph)) {
      outputs.push_back(n->name());
    }
  }
  HR_RETURN_IF_ERROR(KeepNeeded(outputs, &made.graph).status());
  std::map<std::string, Tensor> values;
  HR_RETURN_IF_ERROR(ReadVariables(source, checkpoint, made.graph, &values));
  HR_RETURN_IF_ERROR(FreezeVariables(values, &made.graph));
  HR_RETURN_IF_ERROR(KeepNeeded(outputs, &made.graph).status());
  for (const NodeDef& n : made.graph.node()) {
    if (IsPlaceholder(n)) made.inputs.push_back(n.name());
  }
  made.outputs = std::move(outputs);
  return made;
}

}  // namespace headrace::command
