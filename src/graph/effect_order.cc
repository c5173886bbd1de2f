#include "graph/effect_order.h"

#include <functional>
#include <queue>

#include "base/hash_map.h"

namespace headrace {
namespace {

// All nodes such that each comes behind what it reads and waits for, else in
// the order of recording; fewer where there is a circle.
std::vector<Node*> InOrder(const Graph& body) {
  const int n = body.num_nodes();
  std::vector<int> pending(n);
  std::vector<std::vector<int>> followers(n);
  const auto follow = [&](int node, const Node* of) {
    ++pending[node];
    followers[of->id()].push_back(node);
  };
  for (int i = 0; i < n; ++i) {
    for (const Edge& e : body.node(i)->inputs()) follow(i, e.node);
    for (const Node* c : body.node(i)->control_inputs()) follow(i, c);
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < n; ++i) {
    if (pending[i] == 0) ready.push(i);
  }
  std::vector<Node*> order;
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(body.node(i));
    for (const int f : followers[i]) {
      if (--pending[f] == 0) ready.push(f);
    }
  }
  return order;
}

// Those that touched a resource since it was last changed, and who changed it.
struct Touched {
  Node* changed = nullptr;
  std::vector<Node*> read;
};

// The resource that a handle names: where it came from, past identities.
Edge Source(Edge e) {
  while (e.index == 0 && e.node->def().Has(OpTrait::kIdentity)) {
    e = e.node->input(0);
  }
  return e;
}

class EffectOrderer {
 public:
  explicit EffectOrderer(int nodes) { effects_.after.resize(nodes); }

  void Add(Node* node) {
    if (!node->def().is_stateful) return;
    const bool changes = HasSideEffect(node->def());
    bool touches = false;
    for (const Edge& e : node->inputs()) {
      if (e.node->output_type(e.index) != DType::kResource) continue;
      touches = true;
      Touch(node, &resources_[Source(e)], changes);
    }
    // What reaches beyond the resources that it is given: prints, files, calls.
    if (changes && (!touches || IsFunctionCall(node->def()))) {
      Touch(node, &world_, true);
      touches = true;
    }
    if (touches) effects_.all.push_back(node);
  }
  Effects Take() { return std::move(effects_); }

 private:
  void Touch(Node* node, Touched* touched, bool changes) {
    Follow(node, touched->changed);
    if (!changes) {
      touched->read.push_back(node);
      return;
    }
    for (Node* reader : touched->read) Follow(node, reader);
    touched->read.clear();
    touched->changed = node;
  }
  void Follow(Node* node, Node* before) {
    if (before == nullptr || before == node) return;
    std::vector<Node*>& list = effects_.after[node->id()];
    for (const Node* known : list) {
      if (known == before) return;
    }
    for (const Node* known : node->control_inputs()) {
      if (known == before) return;
    }
    list.push_back(before);
  }

  Effects effects_;
  HashMap<Edge, Touched> resources_;
  Touched world_;
};

}  // namespace

Effects EffectsOf(const Function& f) {
  EffectOrderer orderer(f.body->num_nodes());
  const std::vector<Node*> order = InOrder(*f.body);
  if (static_cast<int>(order.size()) == f.body->num_nodes()) {
    for (Node* node : order) orderer.Add(node);
  }
  return orderer.Take();
}

}  // namespace headrace
