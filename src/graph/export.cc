#include "graph/export.h"

#include <algorithm>
#include <optional>

#include "base/hash_map.h"
#include "graph/attr_proto.h"
#include "graph/effect_order.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace {
namespace {

using tensorflow::FunctionDef;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

Status AddAttrs(const Node& node, const ExportOptions& options, NodeDef* def) {
  auto& attrs = *def->mutable_attr();
  for (const auto& [name, value] : node.op().attrs()) {
    const AttrDef* attr = node.def().FindAttr(name);
    if (options.strip_default_attrs && attr && attr->has_default &&
        AttrEquals(attr->default_value, value)) {
      continue;
    }
    HR_RETURN_IF_ERROR(AttrToProto(value, &attrs[name]));
  }
  if (options.add_shapes && node.num_outputs() > 0) {
    auto* list = attrs["_output_shapes"].mutable_list();
    for (int i = 0; i < node.num_outputs(); ++i) {
      ShapeToProto(node.output_shape(i), list->add_shape());
    }
  }
  return OkStatus();
}

// "node:arg:index": the output as a function's body names it.
std::string BodyName(const Edge& e) {
  const OpDef& op = e.node->def();
  for (size_t a = 0; a < op.outputs.size(); ++a) {
    ArgRange range = e.node->op().output_range(static_cast<int>(a));
    if (e.index >= range.begin && e.index < range.end) {
      return absl::StrCat(e.node->name(), ":", op.outputs[a].name, ":",
                          e.index - range.begin);
    }
  }
  return absl::StrCat(e.node->name(), ":", e.index);
}

void AddFunctionNames(const AttrMap& attrs, std::vector<std::string>* names) {
  for (const auto& [key, value] : attrs) {
    if (const auto* f = std::get_if<FuncRef>(&value)) {
      names->push_back(f->name);
      if (f->attrs) AddFunctionNames(*f->attrs, names);
    } else if (const auto* l = std::get_if<std::vector<FuncRef>>(&value)) {
      for (const FuncRef& f : *l) names->push_back(f.name);
    }
  }
}

std::vector<std::string> FunctionsNamedBy(const Graph& graph) {
  std::vector<std::string> names;
  for (int i = 0; i < graph.num_nodes(); ++i) {
    AddFunctionNames(graph.node(i)->op().attrs(), &names);
  }
  return names;
}

Status ExportFunctionAs(const Function& f, const ExportOptions& options,
                        FunctionDef* def);

Status ExportLibrary(const Graph& graph, const ExportOptions& options,
                     GraphDef* def) {
  for (const auto& [name, f] : FunctionsUnder(graph)) {
    HR_RETURN_IF_ERROR(
        ExportFunctionAs(*f, options, def->mutable_library()->add_function()));
    if (f->gradient.empty()) continue;
    auto* gradient = def->mutable_library()->add_gradient();
    gradient->set_function_name(name);
    gradient->set_gradient_func(f->gradient);
  }
  return OkStatus();
}

class FunctionExporter {
 public:
  FunctionExporter(const Function& f, const ExportOptions& options,
                   FunctionDef* def)
      : f_(f), options_(options), def_(def) {
    if (options.effect_order) after_ = EffectsOf(f).after;
    for (size_t i = 0; i < f.args.size(); ++i) args_[f.args[i]] = i;
    FindForeign();
  }

  Status Export() {
    auto* signature = def_->mutable_signature();
    signature->set_name(f_.name);
    AddArgs(signature);
    for (size_t i = 0; i < f_.results.size(); ++i) {
      const Edge& e = f_.results[i];
      auto* arg = signature->add_output_arg();
      arg->set_name(f_.result_names[i]);
      // Signatures know no references: who calls reads them.
      arg->set_type(TypeToProto(BaseType(e.node->output_type(e.index))));
      (*def_->mutable_ret())[f_.result_names[i]] = NameOf(e);
    }
    for (int i = 0; i < f_.body->num_nodes(); ++i) {
      const Node* n = f_.body->node(i);
      // Arguments are in the signature and are no nodes of the body.
      if (args_.contains(n) || foreign_.contains(n)) continue;
      HR_RETURN_IF_ERROR(AddNode(*n, def_->add_node_def()));
    }
    for (Node* n : f_.control_outputs) {
      if (args_.contains(n)) continue;
      (*def_->mutable_control_ret())[n->name()] = n->name();
      signature->add_control_output(n->name());
    }
    for (const auto& [name, value] : f_.attrs) {
      HR_RETURN_IF_ERROR(AttrToProto(value, &(*def_->mutable_attr())[name]));
    }
    signature->set_is_stateful(f_.is_stateful());
    return OkStatus();
  }

 private:
  // A body may have effects that are not the function's: it is a part of a
  // graph. Readers run every effect that they find, so that it is written
  // without what it does not need.
  void FindForeign() {
    HashSet<const Node*> needed;
    std::vector<const Node*> todo;
    const auto need = [&](const Node* n) {
      if (!args_.contains(n) && needed.insert(n).second) todo.push_back(n);
    };
    for (const Edge& e : f_.results) need(e.node);
    for (const Node* n : f_.control_outputs) need(n);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      for (const Edge& e : n->inputs()) need(e.node);
      for (const Node* c : n->control_inputs()) need(c);
    }
    bool effects = false;
    for (int i = 0; i < f_.body->num_nodes(); ++i) {
      const Node* n = f_.body->node(i);
      if (needed.contains(n)) continue;
      foreign_.insert(n);
      effects = effects || (!args_.contains(n) && HasSideEffect(n->def()));
    }
    if (!effects) foreign_.clear();
  }

  std::string ArgName(size_t i) const {
    return i < f_.arg_names.size() ? f_.arg_names[i] : f_.args[i]->name();
  }
  std::string NameOf(const Edge& e) const {
    auto it = args_.find(e.node);
    return it == args_.end() ? BodyName(e) : ArgName(it->second);
  }

  void AddArgs(tensorflow::OpDef* signature) {
    for (size_t i = 0; i < f_.args.size(); ++i) {
      const Node* n = f_.args[i];
      auto* arg = signature->add_input_arg();
      arg->set_name(ArgName(i));
      arg->set_type(TypeToProto(BaseType(n->output_type(0))));
      if (auto handle = n->output_handle(0)) {
        for (const HandlePart& part : *handle) {
          auto* p = arg->add_handle_data();
          p->set_dtype(TypeToProto(part.dtype));
          ShapeToProto(part.shape, p->mutable_shape());
        }
      }
      auto& attrs = *(*def_->mutable_arg_attr())[i].mutable_attr();
      // Upstream keeps the shapes of arguments as a note beside the signature,
      // which has no place for them.
      ShapeToProto(n->output_shape(0),
                   attrs["_output_shapes"].mutable_list()->add_shape());
      const auto* given =
          n->op().attrs().Get<std::string>("_user_specified_name");
      attrs["_user_specified_name"].set_s(given ? *given : n->name());
    }
  }

  void AddControl(const Node* c, NodeDef* def) const {
    auto it = args_.find(c);
    def->add_input(
        absl::StrCat("^", it == args_.end() ? c->name() : ArgName(it->second)));
  }

  Status AddNode(const Node& n, NodeDef* def) {
    def->set_name(n.name());
    def->set_op(n.def().name);
    def->set_device(n.device());
    for (const Edge& e : n.inputs()) def->add_input(NameOf(e));
    for (const Node* c : n.control_inputs()) AddControl(c, def);
    if (!after_.empty()) {
      for (const Node* c : after_[n.id()]) {
        if (!foreign_.contains(c)) AddControl(c, def);
      }
    }
    ExportOptions attrs;  // shapes are those of the graph's nodes alone
    attrs.strip_default_attrs = options_.strip_default_attrs;
    return AddAttrs(n, attrs, def);
  }

  const Function& f_;
  const ExportOptions& options_;
  FunctionDef* def_;
  HashMap<const Node*, size_t> args_;
  HashSet<const Node*> foreign_;
  std::vector<std::vector<Node*>> after_;  // by node; or empty
};

Status ExportFunctionAs(const Function& f, const ExportOptions& options,
                        FunctionDef* def) {
  return FunctionExporter(f, options, def).Export();
}

// The control inputs by which a function's graph tells of its effects.
class EffectControls {
 public:
  EffectControls(const Function& f, const OpDef& nothing)
      : effects_(EffectsOf(f)), nothing_(nothing.name) {
    if (effects_.all.empty()) return;
    // Others would wait for themselves: what is read may lead to an effect.
    for (const Edge& e : f.results) {
      if (e.node->def().Has(OpTrait::kIdentity)) waiting_.insert(e.node);
    }
    for (int i = 0; i < f.body->num_nodes(); ++i) {
      const Node* n = f.body->node(i);
      for (const Edge& e : n->inputs()) waiting_.erase(e.node);
      for (const Node* c : n->control_inputs()) waiting_.erase(c);
    }
    if (f.results.empty()) return;
    barrier_ = nothing_;
    for (int i = 1; f.body->FindNode(barrier_); ++i) {
      barrier_ = absl::StrCat(nothing_, "_", i);
    }
  }

  void AddTo(const Node& node, NodeDef* def) const {
    for (const Node* c : effects_.after[node.id()]) AddControl(c->name(), def);
    if (!barrier_.empty() && waiting_.contains(&node)) {
      AddControl(barrier_, def);
    }
  }
  void AddBarrier(GraphDef* graph) const {
    if (barrier_.empty()) return;
    NodeDef* def = graph->add_node();
    def->set_name(barrier_);
    def->set_op(nothing_);
    std::vector<std::string> names;
    for (const Node* n : effects_.all) names.push_back(n->name());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) AddControl(name, def);
  }

 private:
  static void AddControl(StringView name, NodeDef* def) {
    def->add_input(absl::StrCat("^", name));
  }

  const Effects effects_;
  const std::string nothing_;
  std::string barrier_;  // empty: none
  HashSet<const Node*> waiting_;
};

}  // namespace

NamedFunctions FunctionsUnder(const Graph& graph) {
  NamedFunctions found;
  HashSet<std::string> seen;
  std::vector<std::string> names;
  if (graph.library()) names = graph.library()->Names();
  for (std::string& name : FunctionsNamedBy(graph)) {
    names.push_back(std::move(name));
  }
  // The list grows while it is walked: functions name further functions.
  for (size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second) continue;
    // An unknown name is kept as it is: the error is the run's.
    StatusOr<FunctionPtr> f = FindFunction(graph.library().get(), names[i]);
    if (!f.ok()) continue;
    if (!(*f)->gradient.empty()) names.push_back((*f)->gradient);
    for (std::string& name : FunctionsNamedBy(*(*f)->body)) {
      names.push_back(std::move(name));
    }
    found.emplace_back(names[i], *std::move(f));
  }
  return found;
}

Status ExportNode(const Node& node, const ExportOptions& options,
                  NodeDef* def) {
  def->set_name(node.name());
  def->set_op(node.def().name);
  for (const Edge& e : node.inputs()) {
    // The short form, as upstream writes it.
    if (e.index == 0) {
      def->add_input(e.node->name());
    } else {
      def->add_input(absl::StrCat(e.node->name(), ":", e.index));
    }
  }
  for (const Node* c : node.control_inputs()) {
    def->add_input(absl::StrCat("^", c->name()));
  }
  if (!node.device().empty()) def->set_device(node.device());
  return AddAttrs(node, options, def);
}

Status ExportGraph(const Graph& graph, const ExportOptions& options,
                   GraphDef* def) {
  std::optional<EffectControls> controls;
  if (options.effects_of && options.nothing) {
    controls.emplace(*options.effects_of, *options.nothing);
  }
  for (int i = 0; i < graph.num_nodes(); ++i) {
    NodeDef* node = def->add_node();
    HR_RETURN_IF_ERROR(ExportNode(*graph.node(i), options, node));
    if (controls) controls->AddTo(*graph.node(i), node);
  }
  if (controls) controls->AddBarrier(def);
  ExportVersions(graph.versions(), def->mutable_versions());
  return ExportLibrary(graph, options, def);
}

void ExportVersions(const GraphVersions& versions,
                    tensorflow::VersionDef* def) {
  def->set_producer(versions.producer);
  if (versions.min_consumer) def->set_min_consumer(versions.min_consumer);
  for (int bad : versions.bad_consumers) def->add_bad_consumers(bad);
}

Status ExportFunction(const Function& f, FunctionDef* def) {
  return ExportFunctionAs(f, {}, def);
}

}  // namespace headrace
