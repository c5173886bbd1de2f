#include "graph/builder.h"

#include "op/registry.h"

namespace headrace {
namespace {

// Eager tensors up to this many elements become constants of a function that
// uses them; larger ones are captured (upstream's threshold).
constexpr int64_t kMostCopied = 128;

// What a function's body takes as a constant instead of capturing `v`: a small
// eager tensor, or an outer graph's constant. Null: capture it.
const Tensor* ConstantToCopy(const Value& v) {
  if (v.is_symbolic()) {
    return v.node()->op().name() == "Const" ? v.node()->constant() : nullptr;
  }
  if (v.dtype() == DType::kResource || v.dtype() == DType::kVariant ||
      !v.has_value() || v.tensor().num_elements() > kMostCopied) {
    return nullptr;
  }
  return &v.tensor();
}

}  // namespace

StatusOr<Value> GraphBuilder::Import(const Value& v) {
  if (v.is_symbolic() && v.graph() == graph_) return v;
  auto it = imported_.find(v.id());
  if (it != imported_.end()) return it->second;
  if (!is_function()) {
    return FailedPrecondition(
        v.is_symbolic()
            ? "a tensor of another graph is used as an input"
            : "Attempting to capture an EagerTensor without building a "
              "function.");
  }
  Value inner;
  // Neither the caller's scope nor its control dependencies are the
  // capture's.
  std::string scope, name;
  std::vector<Node*> controls;
  scope.swap(scope_);
  name.swap(next_name_);
  controls.swap(control_inputs_);
  Status status;
  const Tensor* constant = ConstantToCopy(v);
  if (constant) {
    ValueList outputs;
    StatusOr<const OpDef*> def = LookUpOp("Const");
    status = def.status();
    if (def.ok()) {
      auto op =
          ResolveOp(**def, {}, {{"value", *constant}, {"dtype", v.dtype()}});
      status = op.status();
      if (op.ok()) status = Emit(*op, {}, &outputs);
    }
    if (status.ok()) inner = outputs[0];
  } else {
    StatusOr<Value> made =
        AddPlaceholder("capture", v.dtype(), v.shape(), v.shared_handle_data());
    status = made.status();
    if (made.ok()) {
      inner = *made;
      captures_.push_back({v, inner});
    }
  }
  scope.swap(scope_);
  name.swap(next_name_);
  controls.swap(control_inputs_);
  HR_RETURN_IF_ERROR(status);
  imported_.emplace(v.id(), inner);
  return inner;
}

StatusOr<Value> GraphBuilder::AddPlaceholder(
    StringView name, DType dtype, const Shape& shape,
    std::shared_ptr<const HandleData> handle) {
  HR_ASSIGN_OR_RETURN(const OpDef* def, LookUpOp("Placeholder"));
  HR_ASSIGN_OR_RETURN(
      ResolvedOpPtr op,
      ResolveOp(*def, {}, {{"dtype", dtype}, {"shape", shape}}));
  SetNextName(name);
  HR_ASSIGN_OR_RETURN(Node * node, AddNode(op, {}));
  if (handle) node->set_output_handle(0, std::move(handle));
  return graph_->Output(node, 0);
}

StatusOr<Node*> GraphBuilder::AddNode(const ResolvedOpPtr& op,
                                      absl::Span<const Value> inputs) {
  absl::InlinedVector<Edge, 4> edges;
  for (const Value& v : inputs) edges.push_back(EdgeOf(v));
  std::string name = std::move(next_name_);
  next_name_.clear();
  if (name.empty()) name = op->name();
  if (name[0] == '_') name.erase(0, 1);
  // A trailing slash names the node exactly, scope and all.
  if (name.back() == '/') {
    name.pop_back();
  } else if (!scope_.empty()) {
    name = scope_ + name;
  }
  HR_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(graph_->UniqueName(name), op,
                                                   edges, control_inputs_));
  if (!device_.empty()) node->set_device(device_);
  Status inferred = InferNode(node);
  if (!inferred.ok()) {
    graph_->RemoveLastNode();
    return inferred;
  }
  return node;
}

Status GraphBuilder::Emit(const ResolvedOpPtr& op,
                          absl::Span<const Value> inputs, ValueList* outputs) {
  std::string name = std::move(next_name_);
  next_name_.clear();
  ValueList imported;
  for (const Value& v : inputs) {
    HR_ASSIGN_OR_RETURN(Value mine, Import(v));
    imported.push_back(std::move(mine));
  }
  next_name_ = std::move(name);
  HR_ASSIGN_OR_RETURN(Node * node, AddNode(op, imported));
  outputs->clear();
  for (int i = 0; i < node->num_outputs(); ++i) {
    outputs->push_back(graph_->Output(node, i));
  }
  return OkStatus();
}

FunctionPtr MakeFunction(std::string name, const GraphBuilder& builder,
                         absl::Span<const Value> args,
                         absl::Span<const Value> results) {
  auto f = std::make_shared<Function>();
  f->name = std::move(name);
  f->body = builder.graph();
  for (const Value& v : args) {
    f->args.push_back(v.node());
    f->arg_names.push_back(v.node()->name());
  }
  for (const Value& v : results) {
    f->results.push_back(EdgeOf(v));
    f->result_names.push_back(absl::StrCat("output_", f->result_names.size()));
  }
  for (int i = 0; i < f->body->num_nodes(); ++i) {
    Node* n = f->body->node(i);
    if (HasSideEffect(n->def())) f->control_outputs.push_back(n);
  }
  return f;
}

}  // namespace headrace
