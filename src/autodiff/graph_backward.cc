#include "autodiff/graph_backward.h"

#include <algorithm>

#include "autodiff/loop_backward.h"
#include "graph/names_under.h"
#include "op/registry.h"

namespace headrace {

bool GraphBackward::LeadsThrough(const Edge& e) const {
  return IsDifferentiable(e.node->output_type(e.index)) &&
         (sought(e) || (!stop_.contains(e) && leads_.contains(UnitOf(e.node))));
}

std::vector<Node*> GraphBackward::Between() {
  // Depth first from the arrivals: a node is done after its inputs, so the
  // reverse has users first. A node leads to a sought edge when an input is
  // one, or when an input's node leads there.
  std::vector<Node*> order;
  HashMap<const Node*, char> state;
  struct Open {
    Node* node;
    absl::InlinedVector<Edge, 4> inputs;
    size_t next = 0;
  };
  std::vector<Open> stack;
  auto open = [&](Node* n) {
    n = UnitOf(n);
    if (state.emplace(n, 1).second) stack.push_back({n, InputsOf(n)});
  };
  std::vector<Node*> roots;
  for (const auto& [e, g] : all_arrived()) roots.push_back(e.node);
  // The order of a hash map differs from run to run; nodes, and the order of
  // sums, must not.
  std::sort(roots.begin(), roots.end(),
            [](Node* a, Node* b) { return a->id() < b->id(); });
  for (Node* root : roots) {
    open(root);
    while (!stack.empty()) {
      auto& [n, inputs, next] = stack.back();
      if (next == inputs.size()) {
        bool leads = false;
        for (const Edge& e : inputs) {
          leads = leads || LeadsThrough(e);
        }
        if (leads) leads_.insert(n);
        order.push_back(n);
        stack.pop_back();
        continue;
      }
      const Edge e = inputs[next++];
      if (!stop_.contains(e)) open(e.node);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

Status GraphBackward::CheckNotAround() {
  std::vector<Edge> open;
  for (Node* n : Between()) {
    if (FlowMap::GoesRound(*n)) {
      open.insert(open.end(), n->inputs().begin(), n->inputs().end());
    }
  }
  HashSet<Edge> seen;
  while (!open.empty()) {
    const Edge e = open.back();
    open.pop_back();
    if (stop_.contains(e) || !seen.insert(e).second ||
        !IsDifferentiable(e.node->output_type(e.index))) {
      continue;
    }
    if (sought(e)) {
      return InvalidArgument(
          "Cannot compute gradient inside while loop with respect to op '",
          e.node->name(),
          "'. We do not support taking the gradient wrt or through the initial "
          "value of a loop variable. Gradients can be computed through loop "
          "invariants or wrt the input parameters to the loop body.");
    }
    open.insert(open.end(), e.node->inputs().begin(), e.node->inputs().end());
  }
  return OkStatus();
}

Gradient GraphBackward::SumOf(absl::Span<const Gradient> parts) {
  std::vector<Value> dense;
  for (const Gradient& g : parts) {
    if (!g.is_slices()) dense.push_back(g.dense);
  }
  // Where names matter the op is always the one that upstream has.
  if (names_ == nullptr || parts.size() < 2 || dense.size() < parts.size()) {
    return SumGradients(scope_, parts);
  }
  Gradient sum;
  OpScope& s = scope_;
  sum.dense = s("AddN", dense);
  return sum;
}

// With places: the sum of what came from a device is made beside what the
// earliest call in the graph gave, whose gradient comes last; the sum of these
// beside what the gradient is of.
Gradient GraphBackward::Sum(const Edge& e, absl::Span<const Gradient> parts) {
  if (builder_ == nullptr || parts.size() < 2) {
    return SumOf(parts);
  }
  auto made_by = [](const Gradient& g) -> const Node* {
    const Value& v = g.is_slices() ? g.values : g.dense;
    return v.is_symbolic() ? v.node() : nullptr;
  };
  std::vector<std::pair<std::string, std::vector<Gradient>>> by_device;
  for (const Gradient& g : parts) {
    const Node* n = made_by(g);
    const std::string device = n ? n->device() : "";
    auto it = std::find_if(by_device.begin(), by_device.end(),
                           [&](const auto& d) { return d.first == device; });
    if (it == by_device.end()) {
      by_device.push_back({device, {}});
      it = by_device.end() - 1;
    }
    it->second.push_back(g);
  }
  std::vector<Gradient> sums;
  for (const auto& [device, own] : by_device) {
    const Node* first = made_by(own.back());
    PlacedWith place(builder_, first ? *first : *e.node);
    sums.push_back(SumOf(own));
  }
  PlacedWith place(builder_, *e.node);
  return SumOf(sums);
}

Status GraphBackward::CallGradient(const Node* n, GradientContext& g) {
  const CopiedFrom* copied = nullptr;
  if (origins_) {
    auto it = origins_->find(n);
    if (it != origins_->end()) copied = it->second.get();
  }
  return CallGradientOfNode(*n, g, copied);
}

// In a graph whose nodes have upstream's names, zeros for all outputs that no
// gradient arrives at: plans drop those that nobody reads.
void GraphBackward::NameZeros(GradientContext& g) {
  const SpelledIn spelled(names_);
  std::vector<Value> zeros(g.num_outputs());
  for (int i = 0; i < g.num_outputs(); ++i) {
    const DType t = g.output(i).dtype();
    if (g.raw_grad(i) || !(IsFloating(t) || IsComplex(t))) continue;
    zeros[i] = Named(g, "zeros_like", "ZerosLike", {g.output(i)});
  }
  g.set_zeros(std::move(zeros));
}

Status GraphBackward::CallNamed(const Node* n, std::vector<bool> wanted,
                                GradientContext& g) {
  if (!CallsFunctions(n->def())) NameZeros(g);
  NamesUnder names(names_, names_->UniqueScope(n->name() + "_grad"));
  if (CallsFunctions(n->def())) {
    g.set_wanted(std::move(wanted));
    HR_RETURN_IF_ERROR(CallGradient(n, g));
  } else {
    // Upstream's graphs have the gradients of all inputs.
    const SpelledIn spelled(names_);
    HR_RETURN_IF_ERROR(CallGradient(n, g));
  }
  return gates_ ? Gate(g) : OkStatus();
}

Status GraphBackward::Gate(GradientContext& g) {
  std::vector<Value*> gated;
  std::vector<Node*> made;
  for (Gradient& r : g.results()) {
    Value& v = r.is_slices() ? r.values : r.dense;
    if (!v.is_symbolic() || v.graph() != names_->graph()) continue;
    gated.push_back(&v);
    if (std::find(made.begin(), made.end(), v.node()) == made.end()) {
      made.push_back(v.node());
    }
  }
  // What is in a branch or loop waits there as it is.
  if (gated.size() < 2 || names_->context() != nullptr) return OkStatus();
  NamesUnder tuple(names_, names_->UniqueScope("tuple"));
  const std::vector<Node*> around = names_->control_inputs();
  std::vector<Node*> waits = around;
  waits.insert(waits.end(), made.begin(), made.end());
  names_->SetControlInputs(waits);
  names_->SetNextName("group_deps");
  g("NoOp", {});
  names_->SetControlInputs(around);
  HR_RETURN_IF_ERROR(g.status());
  waits = around;
  waits.push_back(names_->graph()->node(names_->graph()->num_nodes() - 1));
  names_->SetControlInputs(waits);
  for (Value* v : gated) {
    PlacedWith place(names_, *v->node());
    names_->SetNextName("control_dependency");
    *v = g("Identity", {*v});
    if (!g.ok()) break;
  }
  names_->SetControlInputs(around);
  return g.status();
}

Node* GraphBackward::UnitOf(Node* n) const {
  const FlowMap::Loop* loop = flow_ ? flow_->map.LeftBy(*n) : nullptr;
  return loop ? loop->exits[0] : n;
}

absl::InlinedVector<Edge, 4> GraphBackward::InputsOf(const Node* unit) const {
  absl::InlinedVector<Edge, 4> inputs;
  const FlowMap::Loop* loop = flow_ ? flow_->map.LeftBy(*unit) : nullptr;
  if (loop) {
    // Upstream's loops without back_prop hand no gradient on.
    if (!flow_->HasGradient(*loop)) return inputs;
    for (const FlowMap::Loop::Variable& v : loop->variables) {
      inputs.push_back(v.enter->input(0));
    }
    for (const Node* c : loop->constants) inputs.push_back(c->input(0));
    return inputs;
  }
  // What goes round is gone back through with its loop alone.
  if (flow_ && flow_->map.GoesRound(*unit)) return inputs;
  inputs.assign(unit->inputs().begin(), unit->inputs().end());
  return inputs;
}

StatusOr<FlowContext*> GraphBackward::ContextOf(const FlowMap::Guard* guard) {
  FlowContext* const own = flow_->builder->context();
  if (guard == nullptr) return own;
  auto it = contexts_.find(guard);
  if (it != contexts_.end()) return it->second;
  HR_ASSIGN_OR_RETURN(FlowContext * around, ContextOf(guard->around));
  GraphBuilder* b = flow_->builder;
  Value pred = b->graph()->Output(guard->pred);
  if (around) {
    HR_ASSIGN_OR_RETURN(pred, around->Import(pred));
  }
  HR_ASSIGN_OR_RETURN(Value side, b->EmitIn("Switch", around, {pred, pred}, {},
                                            {}, guard->side));
  HR_ASSIGN_OR_RETURN(Value pivot, b->EmitIn("Identity", around, {side}));
  auto* context = b->NewContext<BackwardGuardContext>(around);
  context->set_pivot(pivot.node());
  contexts_.emplace(guard, context);
  return context;
}

Status GraphBackward::BackThrough(Node* n) {
  if (!leads_.contains(n)) return OkStatus();
  if (flow_ == nullptr) return BackThroughCall(n);
  const FlowMap::Loop* loop = flow_->map.LeftBy(*n);
  HR_ASSIGN_OR_RETURN(FlowContext * context,
                      ContextOf(flow_->map.GuardOfNode(*n)));
  ContextScope scope(flow_->builder, context);
  return loop ? BackThroughLoop(*loop) : BackThroughCall(n);
}

Status GraphBackward::BackThroughCall(Node* n) {
  // The op may grow by its own gradient; these are its edges of now.
  const std::vector<Edge> from(n->inputs().begin(), n->inputs().end());
  std::vector<Edge> to;
  for (int i = 0; i < n->num_outputs(); ++i) to.push_back({n, i});
  const auto wants = [&](size_t i) { return LeadsThrough(from[i]); };
  return Through(to, from, wants,
                 [&](std::vector<bool> wanted, const Gradients& gradients,
                     std::vector<Gradient>* results) -> Status {
                   std::vector<Value> inputs, outputs;
                   for (const Edge& e : from) {
                     inputs.push_back(graph_->Output(e));
                   }
                   for (const Edge& e : to)
                     outputs.push_back(graph_->Output(e));
                   GradientContext g(n->op_ptr(), inputs, outputs, gradients);
                   PlacedWith place(builder_, *n);
                   if (names_) {
                     HR_RETURN_IF_ERROR(CallNamed(n, std::move(wanted), g));
                   } else {
                     g.set_wanted(std::move(wanted));
                     HR_RETURN_IF_ERROR(CallGradient(n, g));
                   }
                   *results = std::move(g.results());
                   return OkStatus();
                 });
}

Status GraphBackward::Back() {
  for (Node* n : Between()) HR_RETURN_IF_ERROR(BackThrough(n));
  return scope_.status();
}

}  // namespace headrace
