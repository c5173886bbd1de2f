#include "autodiff/graph_backward.h"

#include <algorithm>

namespace headrace {

bool GraphBackward::LeadsThrough(const Edge& e) const {
  return IsDifferentiable(e.node->output_type(e.index)) &&
         (sought(e) || (!stop_.contains(e) && leads_.contains(e.node)));
}

std::vector<Node*> GraphBackward::Between() {
  // Depth first from the arrivals: a node is done after its inputs, so the
  // reverse has users first. A node leads to a sought edge when an input is
  // one, or when an input's node leads there.
  std::vector<Node*> order;
  absl::flat_hash_map<const Node*, char> state;
  std::vector<std::pair<Node*, int>> stack;
  auto open = [&](Node* n) {
    if (state.emplace(n, 1).second) stack.push_back({n, 0});
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
      auto& [n, next] = stack.back();
      if (next == n->num_inputs()) {
        bool leads = false;
        for (const Edge& e : n->inputs()) {
          leads = leads || LeadsThrough(e);
        }
        if (leads) leads_.insert(n);
        order.push_back(n);
        stack.pop_back();
        continue;
      }
      const Edge& e = n->input(next++);
      if (!stop_.contains(e)) open(e.node);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// With places: the sum of what came from a device is made beside what the
// earliest call in the graph gave, whose gradient comes last; the sum of these
// beside what the gradient is of.
Gradient GraphBackward::Sum(const Edge& e, absl::Span<const Gradient> parts) {
  if (builder_ == nullptr || parts.size() < 2) {
    return SumGradients(scope_, parts);
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
    sums.push_back(SumGradients(scope_, own));
  }
  PlacedWith place(builder_, *e.node);
  return SumGradients(scope_, sums);
}

Status GraphBackward::CallGradient(const Node* n, GradientContext& g) {
  const CopiedFrom* copied = nullptr;
  if (origins_) {
    auto it = origins_->find(n);
    if (it != origins_->end()) copied = it->second.get();
  }
  return CallGradientOfNode(*n, g, copied);
}

Status GraphBackward::BackThrough(Node* n) {
  if (!leads_.contains(n)) return OkStatus();
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
                   g.set_wanted(std::move(wanted));
                   PlacedWith place(builder_, *n);
                   HR_RETURN_IF_ERROR(CallGradient(n, g));
                   *results = std::move(g.results());
                   return OkStatus();
                 });
}

Status GraphBackward::Back() {
  for (Node* n : Between()) HR_RETURN_IF_ERROR(BackThrough(n));
  return scope_.status();
}

}  // namespace headrace
