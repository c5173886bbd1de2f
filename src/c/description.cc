// From a description to a node.
#include "c/description.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "c/status.h"
#include "op/op_text.h"
#include "op/registry.h"

namespace headrace::capi {
namespace {

using Description = TF_OperationDescription;

// What upstream says of the mistakes of a description.
Status WhileBuilding(const std::vector<std::string>& mistakes,
                     const Description& d, const OpDef& op) {
  const std::string where = absl::StrCat(" while building NodeDef '", d.name,
                                         "' using ", OpDefSummary(op));
  if (mistakes.size() == 1) return InvalidArgument(mistakes[0], where);
  return InvalidArgument(mistakes.size(), " errors", where, ":\n",
                         absl::StrJoin(mistakes, "\n"));
}

std::string Inconsistent(StringView name, const AttrValue& a,
                         const AttrValue& b) {
  return absl::StrCat("Inconsistent values for attr '", name, "' ",
                      AttrValueText(a), " vs. ", AttrValueText(b));
}

// What the inputs say of the attributes, and what is wrong with them.
class InputMatcher {
 public:
  InputMatcher(const Description& d, const OpDef& op) : d_(d), op_(op) {}

  // Adds to `attrs` what the inputs say. InvalidArgument, in upstream's words,
  // where they are others than the definition and `attrs` say.
  Status Match(AttrMap* attrs) {
    for (size_t i = 0; i < d_.inputs.size(); ++i) {
      if (i < op_.inputs.size()) {
        MatchOne(op_.inputs[i], d_.inputs[i]);
      } else {
        Mistake("More Input() calls than the ", op_.inputs.size(),
                " input_args");
      }
    }
    if (d_.inputs.size() < op_.inputs.size()) {
      Mistake(d_.inputs.size(), " inputs specified of ", op_.inputs.size(),
              " inputs in Op");
    }
    for (const auto& [name, value] : found_) {
      const AttrValue* said = attrs->Find(name);
      // Values of another kind are told by CheckGivenAttrs.
      if (said && said->kind() == value.kind() && !AttrEquals(*said, value)) {
        mistakes_.push_back(Inconsistent(name, value, *said));
      } else if (said == nullptr) {
        attrs->Set(name, value);
      }
    }
    if (mistakes_.empty()) return OkStatus();
    return WhileBuilding(mistakes_, d_, op_);
  }

 private:
  template <typename... Parts>
  void Mistake(const Parts&... parts) {
    mistakes_.push_back(absl::StrCat(parts...));
  }

  void Say(const std::string& name, AttrValue value) {
    const AttrValue* was = found_.Find(name);
    if (was == nullptr) {
      found_.Set(name, std::move(value));
    } else if (!AttrEquals(*was, value)) {
      mistakes_.push_back(Inconsistent(name, *was, value));
    }
  }

  void CheckType(const ArgDef& arg, DType is, DType wanted) {
    if (arg.is_ref && !IsRef(is)) {
      Mistake("Input '", arg.name, "' passed ", DTypeName(is),
              " expected ref type");
    } else if (BaseType(is) != wanted) {
      Mistake("Input '", arg.name, "' passed ", DTypeName(is), " expected ",
              DTypeName(wanted));
    }
  }

  void MatchOne(const ArgDef& arg, const Description::Input& given) {
    if (given.is_list != arg.is_list()) {
      if (given.is_list) {
        Mistake("List provided to input '", arg.name,
                "' when single Tensor expected");
      } else {
        Mistake("Single tensor passed to '", arg.name, "', expected list");
      }
      return;
    }
    std::vector<DType> types;
    for (const Edge& e : given.edges) {
      types.push_back(e.node->output_type(e.index));
    }
    if (!arg.type_list_attr.empty()) {
      for (DType& type : types) type = BaseType(type);
      return Say(arg.type_list_attr, std::move(types));
    }
    if (!arg.number_attr.empty()) {
      Say(arg.number_attr, static_cast<int64_t>(types.size()));
    }
    DType wanted = arg.type;
    if (!arg.type_attr.empty() && !types.empty()) {
      wanted = BaseType(types[0]);
      Say(arg.type_attr, wanted);
    }
    for (DType type : types) CheckType(arg, type, wanted);
  }

  const Description& d_;
  const OpDef& op_;
  AttrMap found_;
  std::vector<std::string> mistakes_;
};

// Upstream's words for attributes that nothing tells the value of, and for
// those of the wrong kind.
Status CheckGivenAttrs(const Description& d, const OpDef& op) {
  std::vector<std::string> missing;
  for (const AttrDef& attr : op.attrs) {
    if (!d.attrs.Find(attr.name) && !attr.has_default &&
        !op.IsInferred(attr.name)) {
      // Upstream has the last one first.
      missing.insert(missing.begin(), absl::StrCat("'", attr.name, "'"));
    }
  }
  if (!missing.empty()) {
    return InvalidArgument(
        "NodeDef missing attr", missing.size() > 1 ? "s " : " ",
        absl::StrJoin(missing, ", "), " from ", OpDefSummary(op),
        "; NodeDef: {{node ", d.name, "}}");
  }
  for (const AttrDef& attr : op.attrs) {
    const AttrValue* value = d.attrs.Find(attr.name);
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

// A function as the op that its calls are descriptions of.
OpDef SignatureOf(const Function& f) {
  OpDef op;
  op.name = f.name;
  op.is_stateful = f.is_stateful();
  const std::vector<DType> args = f.arg_types(), results = f.result_types();
  for (size_t i = 0; i < args.size(); ++i) {
    op.inputs.push_back({.name = f.arg_names[i], .type = args[i]});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    op.outputs.push_back({.name = f.result_names[i], .type = results[i]});
  }
  return op;
}

// A node whose op is a function of the graph: a call of it.
StatusOr<ResolvedOpPtr> ResolveCall(const Description& d, const Function& f) {
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr call, CallOf(f));
  const OpDef signature = SignatureOf(f);
  AttrMap none;
  HR_RETURN_IF_ERROR(InputMatcher(d, signature).Match(&none));
  if (d.attrs.empty()) return call;
  AttrMap attrs = call->attrs();
  for (const auto& [name, value] : d.attrs) attrs.Set(name, value);
  return ResolveOp(call->def(), call->input_types(), attrs);
}

// The places of TF_ColocateWith, beside those that were set as an attribute.
void AddLocations(const Description& d, AttrMap* attrs) {
  if (d.colocations.empty()) return;
  std::set<std::string> all = d.colocations;
  if (const auto* said = attrs->Get<std::vector<std::string>>(kLocationAttr)) {
    all.insert(said->begin(), said->end());
  }
  attrs->Set(kLocationAttr, std::vector<std::string>(all.begin(), all.end()));
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
  if (!d.status.ok()) {
    const Status all = WhileBuilding({std::string(d.status.message())}, d, *op);
    return Status(d.status.code(), all.message());
  }
  AttrMap attrs = d.attrs;
  HR_RETURN_IF_ERROR(InputMatcher(d, *op).Match(&attrs));
  HR_RETURN_IF_ERROR(CheckGivenAttrs(d, *op));
  AddLocations(d, &attrs);
  std::vector<DType> types;
  for (const Edge& e : edges) {
    types.push_back(e.node->output_type(e.index));
  }
  StatusOr<ResolvedOpPtr> resolved = ResolveOp(*op, types, attrs);
  if (resolved.ok()) return resolved;
  // What resolves ops knows no names of nodes, and says the op's.
  return Status(resolved.status().code(),
                absl::StrReplaceAll(resolved.status().message(),
                                    {{absl::StrCat("{{node ", op->name, "}}"),
                                      absl::StrCat("{{node ", d.name, "}}")}}));
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
