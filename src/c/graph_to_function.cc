// TF_GraphToFunction: a part of a graph as a FunctionDef.
#include <cctype>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/hash_map.h"
#include "c/function.h"
#include "c/graph.h"
#include "c/status.h"
#include "graph/attr_proto.h"
#include "graph/export.h"
#include "op/op_text.h"
#include "tensor/dtype_proto.h"
#include "tensor/tensor_proto.h"

namespace headrace::capi {
namespace {

// What the callers of TF_GraphToFunction give.
struct FunctionRequest {
  std::string name;
  bool append_hash = false;
  std::vector<Node*> body;
  std::vector<Edge> inputs, outputs;
  std::vector<std::string> output_names;  // or empty
  std::vector<Node*> controls;
  std::vector<std::string> control_names;  // or empty
  std::string description;
};

// Names of arguments: small letters, digits and "_", a letter first.
std::string Normalized(StringView name) {
  std::string out;
  for (char c : name) {
    out += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
  }
  const size_t first = out.find_first_not_of('_');
  out.erase(0, std::min(first, out.size()));
  if (out.empty()) return "unknown";
  if (!absl::ascii_isalpha(out[0])) out = absl::StrCat("arg_", out);
  return out;
}

class FunctionWriter {
 public:
  FunctionWriter(const FunctionRequest& request, tensorflow::FunctionDef* def)
      : r_(request), def_(def), body_(r_.body.begin(), r_.body.end()) {}

  Status Write() {
    auto* signature = def_->mutable_signature();
    signature->set_name(r_.name);
    if (!r_.description.empty()) signature->set_description(r_.description);
    for (const Node* n : r_.body) taken_.insert(n->name());
    for (size_t i = 0; i < r_.inputs.size(); ++i) {
      HR_RETURN_IF_ERROR(AddArg(static_cast<int>(i)));
    }
    for (Node* n : r_.body) HR_RETURN_IF_ERROR(AddBodyNode(*n));
    HR_RETURN_IF_ERROR(AddResults());
    HR_RETURN_IF_ERROR(AddControlResults());
    if (r_.append_hash) {
      signature->set_name(absl::StrCat(r_.name, "_", Hash()));
    }
    return OkStatus();
  }

 private:
  Status AddArg(int i) {
    const Edge& e = r_.inputs[i];
    std::string name = Normalized(e.node->name());
    const std::string base = name;
    for (int k = 0; !taken_.insert(name).second; ++k) {
      name = absl::StrCat(base, "_", k);
    }
    if (!args_.emplace(e, name).second) {
      return InvalidArgument("TF_Output ", e.node->name(), ":", e.index,
                             " appears more than once in the input list");
    }
    const DType type = e.node->output_type(e.index);
    if (IsRef(type)) {
      return InvalidArgument("TF_Output ", e.node->name(), ":", e.index,
                             " is a reference, which functions do not take");
    }
    auto* arg = def_->mutable_signature()->add_input_arg();
    arg->set_name(name);
    arg->set_type(TypeToProto(type));
    auto& attrs = *(*def_->mutable_arg_attr())[i].mutable_attr();
    const Shape& shape = e.node->output_shape(e.index);
    if (shape.known_rank()) {
      ShapeToProto(shape, attrs["_output_shapes"].mutable_list()->add_shape());
    }
    return OkStatus();
  }

  // An output as nodes of the body name it.
  StatusOr<std::string> NameIn(const Edge& e) const {
    if (auto it = args_.find(e); it != args_.end()) return it->second;
    if (!body_.contains(e.node)) return std::string();
    const ResolvedOp& op = e.node->op();
    for (size_t a = 0; a < op.def().outputs.size(); ++a) {
      const ArgRange range = op.output_range(static_cast<int>(a));
      if (e.index < range.begin || e.index >= range.end) continue;
      return absl::StrCat(e.node->name(), ":", op.def().outputs[a].name, ":",
                          e.index - range.begin);
    }
    return Internal("no output ", e.index, " of ", e.node->name());
  }

  Status AddBodyNode(const Node& n) {
    if (n.def().is_stateful) def_->mutable_signature()->set_is_stateful(true);
    tensorflow::NodeDef* def = def_->add_node_def();
    HR_RETURN_IF_ERROR(ExportNode(n, {}, def));
    def->clear_input();
    for (int i = 0; i < n.num_inputs(); ++i) {
      const Edge& e = n.input(i);
      HR_ASSIGN_OR_RETURN(const std::string name, NameIn(e));
      if (name.empty()) {
        return InvalidArgument(
            "Input ", i, ", '", e.node->name(), ":", e.index, "', of node '",
            n.name(), "' in function '", r_.name,
            "' is not available. You might need to include it in inputs or "
            "include its source node in the body");
      }
      def->add_input(name);
    }
    for (const Node* c : n.control_inputs()) {
      if (!body_.contains(c)) {
        return InvalidArgument(
            "The source of control edge ^", c->name(), " -> ", n.name(),
            " is not in the body. Encountered while creating function '",
            r_.name, "'");
      }
      def->add_input(absl::StrCat("^", c->name()));
    }
    return OkStatus();
  }

  Status AddResults() {
    HashSet<std::string> names;
    for (size_t i = 0; i < r_.outputs.size(); ++i) {
      const Edge& e = r_.outputs[i];
      HR_ASSIGN_OR_RETURN(const std::string value, NameIn(e));
      if (value.empty()) {
        return InvalidArgument(
            "TF_Output ", e.node->name(), ":", e.index,
            " is neither in the function body nor among function inputs. "
            "Encountered while creating function '",
            r_.name, "'");
      }
      std::string name;
      if (!r_.output_names.empty()) {
        name = r_.output_names[i];
        if (!names.insert(name).second) {
          return InvalidArgument("Cannot have duplicate output names. Name '",
                                 name,
                                 "' appears more than once in 'output_names' "
                                 "array.");
        }
      } else {
        const std::string base = Normalized(e.node->name());
        name = base;
        for (int k = 0; !names.insert(name).second; ++k) {
          name = absl::StrCat(base, "_", k);
        }
      }
      auto* arg = def_->mutable_signature()->add_output_arg();
      arg->set_name(name);
      arg->set_type(TypeToProto(BaseType(e.node->output_type(e.index))));
      (*def_->mutable_ret())[name] = value;
    }
    return OkStatus();
  }

  Status AddControlResults() {
    for (size_t i = 0; i < r_.controls.size(); ++i) {
      const Node* n = r_.controls[i];
      if (!body_.contains(n)) {
        return InvalidArgument("Control output '", n->name(),
                               "' is not in the body of function '", r_.name,
                               "'");
      }
      const std::string name =
          r_.control_names.empty() ? n->name() : r_.control_names[i];
      if (def_->control_ret().count(name) > 0) {
        return InvalidArgument(
            "Cannot have duplicate control output names. Name '", name,
            "' appears more than once in 'control_output_names' array.");
      }
      (*def_->mutable_control_ret())[name] = n->name();
      def_->mutable_signature()->add_control_output(name);
    }
    return OkStatus();
  }

  // Letters that are the same for equal functions.
  std::string Hash() const {
    std::string text = def_->DebugString();
    const uint32_t low = Crc32c(text);
    text += r_.name;
    return absl::StrCat(absl::Hex(low, absl::kZeroPad8),
                        absl::Hex(Crc32c(text) & 0xfff, absl::kZeroPad3));
  }

  const FunctionRequest& r_;
  tensorflow::FunctionDef* def_;
  const HashSet<const Node*> body_;
  HashMap<Edge, std::string> args_;
  HashSet<std::string> taken_;
};

// All nodes but those that only stand for an input.
StatusOr<std::vector<Node*>> WholeBody(const TF_Graph& g,
                                       const FunctionRequest& r) {
  HashSet<const Node*> inputs;
  for (const Edge& e : r.inputs) {
    if (e.node->num_outputs() != 1) {
      return InvalidArgument(
          "When `num_opers` is set to -1, nodes referenced in `inputs` must "
          "have a single output. Node ",
          e.node->name(), " has ", e.node->num_outputs(),
          " outputs. Encountered while creating function '", r.name, "'");
    }
    inputs.insert(e.node);
  }
  std::vector<Node*> body;
  for (int i = 0; i < g.graph->num_nodes(); ++i) {
    if (!inputs.contains(g.graph->node(i))) body.push_back(g.graph->node(i));
  }
  return body;
}

Status CopyNames(const char* const* names, int count,
                 std::vector<std::string>* out) {
  for (int i = 0; names && i < count; ++i) {
    HR_RETURN_IF_ERROR(NotNull(names[i], "the name of an output"));
    out->push_back(names[i]);
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::capi

namespace capi = headrace::capi;

TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name,
                                unsigned char append_hash_to_fn_name,
                                int num_opers, const TF_Operation* const* opers,
                                int ninputs, const TF_Output* inputs,
                                int noutputs, const TF_Output* outputs,
                                const char* const* output_names,
                                const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(
      fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs,
      inputs, noutputs, outputs, output_names, 0, nullptr, nullptr, opts,
      description, status);
}

TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name,
    unsigned char append_hash_to_fn_name, int num_opers,
    const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    int ncontrol_outputs, const TF_Operation* const* control_outputs,
    const char* const* control_output_names, const TF_FunctionOptions* opts,
    const char* description, TF_Status* status) {
  return capi::OrNull(status, [&]() -> headrace::StatusOr<TF_Function*> {
    HR_RETURN_IF_ERROR(capi::NotNull(fn_body, "fn_body"));
    HR_RETURN_IF_ERROR(capi::NotNull(fn_name, "fn_name"));
    auto* g = const_cast<TF_Graph*>(fn_body);
    headrace::MutexLock lock(g->mutex);
    capi::FunctionRequest r;
    r.name = fn_name;
    r.append_hash = append_hash_to_fn_name != 0;
    if (description) r.description = description;
    HR_ASSIGN_OR_RETURN(r.inputs, capi::EdgesOf(g, inputs, ninputs));
    HR_ASSIGN_OR_RETURN(r.outputs, capi::EdgesOf(g, outputs, noutputs));
    HR_ASSIGN_OR_RETURN(r.controls,
                        capi::NodesOf(g, control_outputs, ncontrol_outputs));
    HR_RETURN_IF_ERROR(
        capi::CopyNames(output_names, noutputs, &r.output_names));
    HR_RETURN_IF_ERROR(capi::CopyNames(control_output_names, ncontrol_outputs,
                                       &r.control_names));
    if (num_opers < 0) {
      HR_ASSIGN_OR_RETURN(r.body, capi::WholeBody(*g, r));
    } else {
      HR_ASSIGN_OR_RETURN(r.body, capi::NodesOf(g, opers, num_opers));
    }
    auto f = std::make_unique<TF_Function>();
    HR_RETURN_IF_ERROR(capi::FunctionWriter(r, &f->def).Write());
    return f.release();
  });
}
