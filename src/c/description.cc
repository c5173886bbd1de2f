// From a description to a node.
#include "c/description.h"

#include <algorithm>

#include "c/status.h"
#include "op/op_text.h"
#include "op/registry.h"

namespace headrace::capi {
namespace {

using Description = TF_OperationDescription;

// What upstream says behind a mistake of a description.
Status WhileBuilding(const Status& s, const Description& d, const OpDef& op) {
  return Status(s.code(), absl::StrCat(s.message(), " while building NodeDef '",
                                       d.name, "' using ", OpDefSummary(op)));
}

// Whether each argument got one tensor or one list, as the definition says; the
// attributes that say how long lists are.
Status MatchInputs(const Description& d, const OpDef& op, AttrMap* attrs) {
  for (size_t i = 0; i < d.inputs.size(); ++i) {
    if (i >= op.inputs.size()) {
      return InvalidArgument("More Input() calls than the ", op.inputs.size(),
                             " input_args");
    }
    const ArgDef& arg = op.inputs[i];
    const Description::Input& given = d.inputs[i];
    if (given.is_list && !arg.is_list()) {
      return InvalidArgument("List provided to input '", arg.name,
                             "' when single Tensor expected");
    }
    if (!given.is_list && arg.is_list()) {
      return InvalidArgument("Single tensor passed to '", arg.name,
                             "', expected list");
    }
    if (!arg.number_attr.empty()) {
      attrs->Set(arg.number_attr, static_cast<int64_t>(given.edges.size()));
    } else if (!arg.type_list_attr.empty()) {
      std::vector<DType> types;
      for (const Edge& e : given.edges) {
        types.push_back(BaseType(e.node->output_type(e.index)));
      }
      attrs->Set(arg.type_list_attr, std::move(types));
    }
  }
  if (d.inputs.size() < op.inputs.size()) {
    return InvalidArgument(d.inputs.size(), " inputs specified of ",
                           op.inputs.size(), " inputs in Op");
  }
  return OkStatus();
}

// Upstream's words for an input of another type than the op takes.
Status CheckInputTypes(const Description& d, const OpDef& op, AttrMap attrs) {
  for (size_t i = 0; i < d.inputs.size(); ++i) {
    const ArgDef& arg = op.inputs[i];
    for (const Edge& e : d.inputs[i].edges) {
      const DType is = e.node->output_type(e.index);
      if (arg.is_ref && !IsRef(is)) {
        return InvalidArgument("Input '", arg.name, "' passed ", DTypeName(is),
                               " expected ref type");
      }
      if (!arg.type_list_attr.empty()) continue;
      if (arg.type_attr.empty()) {
        if (arg.type == BaseType(is)) continue;
        return InvalidArgument("Input '", arg.name, "' passed ", DTypeName(is),
                               " expected ", DTypeName(arg.type));
      }
      const DType* said = attrs.Get<DType>(arg.type_attr);
      if (said && *said != BaseType(is)) {
        return InvalidArgument("Inconsistent values for attr '", arg.type_attr,
                               "' ", AttrValueText(*said), " vs. ",
                               AttrValueText(BaseType(is)));
      }
      attrs.Set(arg.type_attr, BaseType(is));
    }
  }
  return OkStatus();
}

// Upstream's words for attributes of the wrong kind, and for those that nothing
// tells the value of.
Status CheckGivenAttrs(const Description& d, const OpDef& op) {
  for (const AttrDef& attr : op.attrs) {
    const AttrValue* value = d.attrs.Find(attr.name);
    if (value == nullptr && !attr.has_default && !op.IsInferred(attr.name)) {
      return InvalidArgument("NodeDef missing attr '", attr.name, "' from ",
                             OpDefSummary(op), "; NodeDef: {{node ", d.name,
                             "}}");
    }
    if (value && value->kind() != attr.kind &&
        value->kind() != AttrKind::kPlaceholder) {
      return InvalidArgument(
          "AttrValue had value with type '", AttrKindName(value->kind()),
          "' when '", AttrKindName(attr.kind), "' expected\n\t for attr '",
          attr.name, "'\n\t; NodeDef: {{node ", d.name, "}}; ",
          OpDefSummary(op));
    }
  }
  return OkStatus();
}

// A node whose op is a function of the graph: a call of it.
StatusOr<ResolvedOpPtr> ResolveCall(const Description& d, const Function& f) {
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr call, CallOf(f));
  size_t given = 0;
  for (const auto& input : d.inputs) given += input.edges.size();
  if (given != f.args.size()) {
    return InvalidArgument(given, " inputs specified of ", f.args.size(),
                           " inputs in function ", f.name,
                           " while building NodeDef '", d.name, "'");
  }
  if (d.attrs.empty()) return call;
  AttrMap attrs = call->attrs();
  for (const auto& [name, value] : d.attrs) attrs.Set(name, value);
  return ResolveOp(call->def(), call->input_types(), attrs);
}

StatusOr<ResolvedOpPtr> Resolve(const Description& d,
                                const std::vector<Edge>& edges) {
  const OpDef* op = FindOp(d.op_type);
  if (op == nullptr) {
    FunctionPtr f = d.graph->graph->library()->Find(d.op_type);
    if (f) return ResolveCall(d, *f);
    return InvalidArgument(LookUpOp(d.op_type).status().message(),
                           " while building NodeDef '", d.name, "'");
  }
  if (!d.status.ok()) return WhileBuilding(d.status, d, *op);
  AttrMap attrs = d.attrs;
  Status fits = MatchInputs(d, *op, &attrs);
  if (fits.ok()) fits = CheckInputTypes(d, *op, attrs);
  if (!fits.ok()) return WhileBuilding(fits, d, *op);
  HR_RETURN_IF_ERROR(CheckGivenAttrs(d, *op));
  if (!d.colocations.empty()) {
    attrs.Set(kLocationAttr, std::vector<std::string>(d.colocations.begin(),
                                                      d.colocations.end()));
  }
  std::vector<DType> types;
  for (const Edge& e : edges) {
    types.push_back(e.node->output_type(e.index));
  }
  return ResolveOp(*op, types, attrs);
}

}  // namespace

StatusOr<Node*> FinishNode(const Description& d) {
  Graph& graph = *d.graph->graph;
  if (graph.FindNode(d.name)) {
    return InvalidArgument("Duplicate node name in graph: '", d.name, "'");
  }
  if (!d.status.ok() && FindOp(d.op_type) == nullptr) return d.status;
  std::vector<Edge> edges;
  for (const auto& input : d.inputs) {
    edges.insert(edges.end(), input.edges.begin(), input.edges.end());
  }
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, Resolve(d, edges));
  HR_RETURN_IF_ERROR(CheckCall(*op, graph.library().get()));
  std::vector<Node*> controls;
  for (Node* c : d.controls) {
    if (std::find(controls.begin(), controls.end(), c) == controls.end()) {
      controls.push_back(c);
    }
  }
  HR_ASSIGN_OR_RETURN(Node * node,
                      graph.AddNode(d.name, std::move(op), edges, controls));
  if (!d.device.empty()) node->set_device(d.device);
  Status inferred = InferNode(node);
  if (!inferred.ok()) {
    graph.RemoveLastNode();
    return inferred;
  }
  // So that names that are made later are others.
  graph.MarkName(node);
  return node;
}

}  // namespace headrace::capi
