#include "graph/builder.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "base/hash_map.h"
#include "graph/partial.h"
#include "op/registry.h"

namespace headrace {
namespace {

// Captured integers up to this many elements tell shapes when traced: a shape
// has at most 254 sizes, most have a handful, and more would keep tensors of
// data alive in the graph.
constexpr int64_t kMostKnown = 128;

// "scope/MatMul/a": how upstream names what input `i` of an op captures.
std::string InputName(const ResolvedOp& op, int i) {
  const auto& defs = op.def().inputs;
  for (size_t d = 0; d < defs.size(); ++d) {
    ArgRange range = op.input_range(static_cast<int>(d));
    if (i < range.begin || i >= range.end) continue;
    if (!defs[d].is_list()) return defs[d].name;
    return absl::StrCat(defs[d].name, "_", i - range.begin);
  }
  return "input";
}

}  // namespace

std::vector<std::string> LocationOf(const Node& node) {
  const auto* names =
      node.op().attrs().Get<std::vector<std::string>>(kLocationAttr);
  if (names && !names->empty()) return *names;
  return {absl::StrCat("loc:@", node.name())};
}

PlacedWith::PlacedWith(GraphBuilder* builder, const Node& node)
    : builder_(builder) {
  if (builder_ == nullptr) return;
  attrs_ = builder_->node_attrs();
  device_ = builder_->device();
  builder_->node_attrs().Set(kLocationAttr, LocationOf(node));
  builder_->set_device(node.device());
}

PlacedWith::~PlacedWith() {
  if (builder_ == nullptr) return;
  builder_->node_attrs() = std::move(attrs_);
  builder_->set_device(std::move(device_));
}

PlacedAnywhere::PlacedAnywhere(GraphBuilder* builder) : builder_(builder) {
  if (builder_ == nullptr) return;
  attrs_ = builder_->node_attrs();
  device_ = builder_->device();
  builder_->node_attrs().Erase(kLocationAttr);
  builder_->set_device("");
}

PlacedAnywhere::~PlacedAnywhere() {
  if (builder_ == nullptr) return;
  builder_->node_attrs() = std::move(attrs_);
  builder_->set_device(std::move(device_));
}

StatusOr<Value> GraphBuilder::Import(const Value& v) {
  return CaptureAs(v, "capture/");
}

StatusOr<Value> GraphBuilder::CaptureAs(const Value& v, std::string name) {
  if (v.is_symbolic() && v.graph() == graph_) return v;
  // Each outer value is captured once, however often it is used.
  auto it = imported_.find(v.id());
  if (it != imported_.end()) return it->second;
  if (!is_function()) {
    if (!v.is_symbolic()) {
      return FailedPrecondition(
          "Attempting to capture an EagerTensor without building a function.");
    }
    return InvalidArgument("Tensor(\"", v.node()->name(), ":", v.index(),
                           "\") must be from the same graph as the operation "
                           "that takes it, but is "
                           "a tensor of another graph");
  }
  // Neither the caller's scope, its control dependencies nor its place are the
  // capture's.
  std::string next;
  std::vector<Node*> controls;
  AttrMap attrs;
  next.swap(next_name_);
  controls.swap(control_inputs_);
  std::swap(attrs, node_attrs_);
  StatusOr<Value> inner =
      v.is_symbolic() && v.node()->def().Is(OpRole::kConstant) &&
              v.node()->constant() && !IsDifferentiable(v.dtype())
          ? CopyConstant(*v.node()->constant())
          : AddPlaceholder(name, v.dtype(), v.shape(), v.shared_handle_data());
  next.swap(next_name_);
  controls.swap(control_inputs_);
  std::swap(attrs, node_attrs_);
  HR_RETURN_IF_ERROR(inner.status());
  imported_.emplace(v.id(), *inner);
  // A copied constant is no argument of the calls.
  if (inner->node()->def().Is(OpRole::kConstant)) return inner;
  bool is_integer = v.dtype() == DType::kInt32 || v.dtype() == DType::kInt64;
  if (is_integer && !v.is_symbolic() && v.has_value() &&
      v.tensor().num_elements() <= kMostKnown) {
    // Shape rules of nodes to come read it.
    inner->node()->set_constant(v.tensor());
  }
  if (is_integer && v.is_symbolic() && v.shape().known_rank() &&
      v.shape().rank() == 1) {
    const Shape sizes = PartialShapeOf(EdgeOf(v));
    if (sizes.known_rank()) inner->node()->set_captured_sizes(sizes);
  }
  captures_.push_back({v, *inner});
  return inner;
}

// An outer graph's constant is made again rather than captured, but for those
// that gradients may be asked of.
StatusOr<Value> GraphBuilder::CopyConstant(const Tensor& t) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("Const"));
  HR_ASSIGN_OR_RETURN(
      ResolvedOpPtr op,
      ResolveOp(*def, {}, {{"value", t}, {"dtype", t.dtype()}}));
  ValueList outputs;
  HR_RETURN_IF_ERROR(Emit(op, {}, &outputs));
  return outputs[0];
}

StatusOr<ResolvedOpPtr> PlaceholderOf(DType dtype, const Shape& shape) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("Placeholder"));
  return ResolveOp(*def, {}, {{"dtype", dtype}, {"shape", shape}});
}

StatusOr<ResolvedOpPtr> CallOf(const Function& f) {
  HR_ASSIGN_OR_RETURN(const OpDef* def,
                      LookUpOp(f.is_stateful() ? "StatefulPartitionedCall"
                                               : "PartitionedCall"));
  return ResolveOp(
      *def, f.arg_types(),
      {{"f", FuncRef{f.name, nullptr}}, {"Tout", f.result_types()}});
}

StatusOr<Value> GraphBuilder::AddPlaceholder(
    StringView name, DType dtype, const Shape& shape,
    std::shared_ptr<const HandleData> handle) {
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr op, PlaceholderOf(dtype, shape));
  SetNextName(name);
  HR_ASSIGN_OR_RETURN(Node * node, AddNode(op, {}, {}));
  if (handle) node->set_output_handle(0, std::move(handle));
  return graph_->Output(node, 0);
}

std::string GraphBuilder::TakeName(const ResolvedOp& op) {
  std::string name = std::move(next_name_);
  next_name_.clear();
  if (name.empty()) name = op.name();
  // Names of internal ops (_ReadReference) are no valid names of nodes.
  if (name[0] == '_') name.erase(0, 1);
  // A trailing slash names the node exactly, scope and all.
  if (name.back() == '/') {
    name.pop_back();
  } else if (!scope_.empty()) {
    name = scope_ + name;
  }
  return name;
}

std::string GraphBuilder::TakeUniqueName(const ResolvedOp& op) {
  // Asked before TakeName, which takes the name.
  const bool exact = !next_name_.empty() && next_name_.back() == '/';
  std::string name = TakeName(op);
  // A name that a scope took is still free for one node.
  if (exact && graph_->FindNode(name) == nullptr &&
      graph_->UniqueName(name, /*mark=*/false) != name) {
    return name;
  }
  return graph_->UniqueName(name);
}

// The node that makes the first reference that the op takes, or null.
static const Node* ReferredBy(const ResolvedOp& op,
                              absl::Span<const Edge> edges) {
  const auto& defs = op.def().inputs;
  for (size_t d = 0; d < defs.size(); ++d) {
    if (!defs[d].is_ref) continue;
    const ArgRange range = op.input_range(static_cast<int>(d));
    if (range.begin < range.end) return edges[range.begin].node;
  }
  return nullptr;
}

StatusOr<Node*> GraphBuilder::AddNode(const ResolvedOpPtr& op,
                                      absl::Span<const Value> inputs,
                                      absl::Span<Node* const> controls) {
  absl::InlinedVector<Edge, 4> edges;
  for (const Value& v : inputs) edges.push_back(EdgeOf(v));
  std::string name = TakeUniqueName(*op);
  ResolvedOpPtr placed;  // the op with the attributes that all nodes get
  // What takes a reference is placed where that lies.
  const Node* const referred = ReferredBy(*op, edges);
  if (!node_attrs_.empty() || referred != nullptr) [[unlikely]] {
    AttrMap attrs = op->attrs();
    if (referred != nullptr) {
      attrs.Set(std::string(kLocationAttr), LocationOf(*referred));
    }
    for (const auto& [key, value] : node_attrs_) {
      // What the op itself says stands above what a scope gives to all.
      if (attrs.Find(key) == nullptr) attrs.Set(key, value);
    }
    HR_ASSIGN_OR_RETURN(placed, ResolveOp(op->def(), op->input_types(), attrs));
  }
  HR_ASSIGN_OR_RETURN(
      Node * node,
      graph_->AddNode(std::move(name), placed ? placed : op, edges, controls));
  if (referred != nullptr) [[unlikely]] {
    node->set_device(referred->device());
  } else if (!device_.empty()) {
    node->set_device(device_);
  }
  Status inferred = InferNode(node);
  if (!inferred.ok()) {
    // A refused op leaves no node behind; its name stays in use, as upstream's
    // does.
    graph_->RemoveLastNode();
    return inferred;
  }
  if (context_) SetContextOf(*node, context_);
  return node;
}

Status GraphBuilder::Emit(const ResolvedOpPtr& op,
                          absl::Span<const Value> inputs, ValueList* outputs) {
  ValueList imported;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& v = inputs[i];
    if (v.is_symbolic() && v.graph() == graph_) [[likely]] {
      imported.push_back(v);
      continue;
    }
    // The capture is named after the op that asks, whose name is needed once
    // more below.
    std::string name = TakeName(*op);
    HR_ASSIGN_OR_RETURN(
        Value mine, CaptureAs(v, absl::StrCat(graph_->UniqueName(name, false),
                                              "/", InputName(*op, i), "/")));
    imported.push_back(std::move(mine));
    // The slash keeps the name as it is: its scope is in it already.
    next_name_ = name + "/";
  }
  HR_ASSIGN_OR_RETURN(Node * node,
                      contexts_.empty()
                          ? AddNode(op, imported, ControlsBeside(imported))
                          : AddInContext(op, std::move(imported)));
  outputs->clear();
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs->push_back(graph_->Output(node, i));
  }
  return OkStatus();
}

StatusOr<Node*> GraphBuilder::AddInContext(const ResolvedOpPtr& op,
                                           ValueList inputs) {
  if (by_hand_) return AddNode(op, inputs, {});
  for (const Value& v : inputs) {
    if (!Reaches(v)) {
      return OutOfReach(*v.node(), context_, TakeUniqueName(*op));
    }
  }
  std::vector<Node*> controls = ControlsBeside(inputs);
  if (context_ == nullptr) return AddNode(op, inputs, controls);
  // What comes in is named within the reader, which is named first.
  std::string name = TakeUniqueName(*op);
  // As upstream: constants open no scope of their own.
  std::string scope = inputs.empty() ? scope_ : name + "/";
  scope.swap(scope_);
  const auto bring_in = [&]() -> Status {
    for (Value& v : inputs) {
      HR_ASSIGN_OR_RETURN(v, context_->Import(v));
    }
    HR_ASSIGN_OR_RETURN(controls,
                        context_->Controls(op->def(), inputs, controls));
    return OkStatus();
  };
  Status in = bring_in();
  scope.swap(scope_);
  HR_RETURN_IF_ERROR(in);
  // The slash keeps the name as it is: its scope is in it already.
  next_name_ = name + "/";
  return AddNode(op, inputs, controls);
}

std::vector<Node*> GraphBuilder::SetControlInputs(std::vector<Node*> nodes) {
  // Each is waited for once, however many scopes name it.
  HashSet<const Node*> seen;
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](Node* n) { return !seen.insert(n).second; }),
              nodes.end());
  // Nested scopes add to the end and take it off again.
  size_t same = 0;
  while (same < std::min(nodes.size(), control_inputs_.size()) &&
         nodes[same] == control_inputs_[same]) {
    ++same;
  }
  controls_since_.resize(same);
  controls_since_.resize(nodes.size(), graph_->num_nodes());
  control_inputs_.swap(nodes);
  return nodes;
}

std::vector<Node*> GraphBuilder::ControlsBeside(
    absl::Span<const Value> inputs) const {
  std::vector<Node*> controls;
  for (size_t i = 0; i < control_inputs_.size(); ++i) {
    // Arguments and captures wait for nothing, whenever they were made.
    const bool waits =
        std::any_of(inputs.begin(), inputs.end(), [&](const Value& v) {
          const Node& n = *v.node();
          return n.id() >= controls_since_[i] &&
                 (n.num_inputs() > 0 || !n.control_inputs().empty());
        });
    if (!waits) controls.push_back(control_inputs_[i]);
  }
  return controls;
}

StatusOr<Value> GraphBuilder::EmitIn(StringView op, FlowContext* in,
                                     absl::Span<const Value> inputs,
                                     AttrMap attrs,
                                     absl::Span<Node* const> controls,
                                     int output) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp(op));
  std::vector<DType> types;
  for (const Value& v : inputs) types.push_back(v.dtype());
  HR_ASSIGN_OR_RETURN(ResolvedOpPtr resolved,
                      ResolveOp(*def, types, std::move(attrs)));
  ContextScope scope(this, in, /*by_hand=*/true);
  HR_ASSIGN_OR_RETURN(Node * node, AddNode(resolved, inputs, controls));
  return graph_->Output(node, output);
}

bool GraphBuilder::Reaches(const Value& v) const {
  const FlowContext* of = OutputContextOf(*v.node());
  return context_ ? context_->Reaches(of) : of == nullptr || !of->loop();
}

FlowContext* GraphBuilder::OutputContextOf(const Node& n) const {
  FlowContext* c = ContextOf(n);
  return c && n.def().Is(OpRole::kExit) ? c->outer() : c;
}

void GraphBuilder::SetContextOf(const Node& n, FlowContext* c) {
  if (static_cast<size_t>(n.id()) >= context_of_.size()) {
    context_of_.resize(n.id() + 1);
  }
  context_of_[n.id()] = c;
}

namespace {

// A node's name in the letters that signatures allow: a-z, 0-9 and _, with a
// number behind it where it is not free.
std::string NameInSignature(
    StringView name, absl::FunctionRef<bool(const std::string&)> is_free) {
  std::string base;
  for (char c : name) {
    base += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
  }
  base.erase(0, std::min(base.find_first_not_of('_'), base.size()));
  if (base.empty() || !absl::ascii_isalpha(base[0])) base = "arg" + base;
  std::string candidate = base;
  for (int i = 1; !is_free(candidate); ++i) {
    candidate = absl::StrCat(base, "_", i);
  }
  return candidate;
}

}  // namespace

FunctionPtr MakeFunction(std::string name, const GraphBuilder& builder,
                         absl::Span<const Value> args,
                         absl::Span<const Value> results, bool keep_effects,
                         AttrMap attrs) {
  auto f = std::make_shared<Function>();
  f->name = std::move(name);
  f->body = builder.graph();
  f->attrs = std::move(attrs);
  HashSet<std::string> taken;
  for (const Value& v : args) {
    f->args.push_back(v.node());
    // Nodes of the body keep their names, so an argument's must differ.
    auto is_free = [&](const std::string& candidate) {
      const Node* other = f->body->FindNode(candidate);
      return (other == nullptr || other == v.node()) &&
             taken.insert(candidate).second;
    };
    f->arg_names.push_back(NameInSignature(v.node()->name(), is_free));
  }
  taken.clear();
  for (const Value& v : results) {
    f->results.push_back(EdgeOf(v));
    f->result_names.push_back(
        NameInSignature(v.node()->name(), [&](const std::string& candidate) {
          return taken.insert(candidate).second;
        }));
  }
  for (int i = 0; keep_effects && i < f->body->num_nodes(); ++i) {
    Node* n = f->body->node(i);
    // What nobody reads would not run otherwise.
    if (HasSideEffect(n->def())) f->control_outputs.push_back(n);
  }
  return f;
}

}  // namespace headrace
