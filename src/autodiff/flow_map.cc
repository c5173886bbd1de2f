#include "autodiff/flow_map.h"

#include <algorithm>

namespace headrace {
namespace {

bool IsFlow(const Node& n) {
  return n.def().role >= OpRole::kSwitch &&
         n.def().role <= OpRole::kLoopCondition;
}

bool IsConstantEnter(const Node& n) {
  return n.def().Is(OpRole::kEnter) && n.op().bool_attr("is_constant");
}

// What an Identity hands on.
Edge BehindIdentities(Edge e) {
  while (e.node->def().Has(OpTrait::kIdentity) && e.node->num_inputs() == 1 &&
         e.node->control_inputs().empty()) {
    e = e.node->input(0);
  }
  return e;
}

const FlowMap::Guard* Deeper(const FlowMap::Guard* a, const FlowMap::Guard* b) {
  if (a == nullptr || b == nullptr) return a ? a : b;
  return b->depth > a->depth ? b : a;
}

const FlowMap::Guard* CommonOf(const FlowMap::Guard* a,
                               const FlowMap::Guard* b) {
  while (a != b && a && b) {
    if (a->depth >= b->depth) {
      const int depth = a->depth;
      a = a->around;
      if (b->depth == depth) b = b->around;
    } else {
      b = b->around;
    }
  }
  return a == b ? a : nullptr;
}

}  // namespace

bool FlowMap::Loop::is_whole() const {
  bool whole = condition != nullptr && !variables.empty();
  for (const Variable& v : variables) {
    whole = whole && v.merge && v.choose && v.next;
  }
  return whole;
}

bool FlowMap::IsNeeded(const Graph& graph) {
  for (int i = 0; i < graph.num_nodes(); ++i) {
    if (IsFlow(*graph.node(i))) return true;
  }
  return false;
}

FlowMap::FlowMap(const Graph& graph)
    : graph_(graph), places_(graph.num_nodes()), users_(graph.num_nodes()) {
  for (int i = 0; i < graph.num_nodes(); ++i) {
    Node* n = graph.node(i);
    for (const Edge& e : n->inputs()) users_[e.node->id()].push_back(n);
    for (Node* c : n->control_inputs()) users_[c->id()].push_back(n);
  }
  FindLoops();
  for (Loop& loop : loops_) FindVariables(&loop);
  FindGuards();
}

const FlowMap::Place& FlowMap::At(const Node& n) const {
  static const Place* const none = new Place();
  const size_t id = n.id();
  return id < places_.size() ? places_[id] : *none;
}

void FlowMap::Add(const Node& n, const Node& like) {
  if (static_cast<size_t>(n.id()) >= places_.size()) {
    places_.resize(n.id() + 1);
  }
  const Place p = At(like);
  places_[n.id()] = {p.seen_in, p.seen_in, p.guard};
}

const FlowMap::Loop* FlowMap::LeftBy(const Node& n) const {
  return n.def().Is(OpRole::kExit) &&
                 static_cast<size_t>(n.id()) < users_.size()
             ? At(n).runs_in
             : nullptr;
}

bool FlowMap::IsOfLoop(const Node& choose) {
  return choose.def().Is(OpRole::kSwitch) && BehindIdentities(choose.input(1))
                                                 .node->def()
                                                 .Is(OpRole::kLoopCondition);
}

bool FlowMap::GoesRound(const Node& n) {
  switch (n.def().role) {
    case OpRole::kEnter:
      return !IsConstantEnter(n);
    case OpRole::kMerge:
      return n.input(0).node->def().Is(OpRole::kEnter) ||
             n.input(0).node->def().Is(OpRole::kNextIteration);
    case OpRole::kSwitch:
      return IsOfLoop(n);
    case OpRole::kNextIteration:
    case OpRole::kLoopCondition:
      return true;
    default:
      return false;
  }
}

// Follows edges from the nodes that wait for nothing.
void FlowMap::FindLoops() {
  std::vector<char> known(places_.size());
  std::deque<Node*> found;
  for (int i = 0; i < graph_.num_nodes(); ++i) {
    Node* n = graph_.node(i);
    if (n->num_inputs() > 0 || !n->control_inputs().empty()) continue;
    known[i] = 1;
    found.push_back(n);
  }
  while (!found.empty()) {
    Node* n = found.front();
    found.pop_front();
    Place& place = places_[n->id()];
    Loop* out = place.runs_in;
    if (n->def().Is(OpRole::kEnter)) {
      const std::string& name = n->op().string_attr("frame_name");
      Loop*& loop = by_frame_[{place.runs_in, name}];
      if (loop == nullptr) {
        loop = &loops_.emplace_back();
        loop->around = place.runs_in;
        loop->frame = name;
      }
      out = loop;
      if (IsConstantEnter(*n)) {
        loop->constants.push_back(n);
      } else {
        loop->variables.push_back({.enter = n});
      }
    } else if (n->def().Is(OpRole::kExit) && place.runs_in) {
      place.runs_in->exits.push_back(n);
      out = place.runs_in->around;
    } else if (n->def().Is(OpRole::kLoopCondition) && place.runs_in) {
      place.runs_in->condition = n;
    }
    place.seen_in = out;
    for (Node* user : users_[n->id()]) {
      if (known[user->id()]) continue;
      known[user->id()] = 1;
      places_[user->id()].runs_in = out;
      found.push_back(user);
    }
  }
  // In the order of the nodes, so that the same graph gives the same gradients.
  const auto earlier = [](const Node* a, const Node* b) {
    return a->id() < b->id();
  };
  for (Loop& loop : loops_) {
    std::sort(loop.constants.begin(), loop.constants.end(), earlier);
    std::sort(loop.exits.begin(), loop.exits.end(), earlier);
    std::sort(loop.variables.begin(), loop.variables.end(),
              [&](const Loop::Variable& a, const Loop::Variable& b) {
                return earlier(a.enter, b.enter);
              });
  }
}

void FlowMap::FindVariables(Loop* loop) {
  for (Loop::Variable& v : loop->variables) {
    for (Node* user : users_[v.enter->id()]) {
      if (user->def().Is(OpRole::kMerge)) v.merge = user;
    }
    if (v.merge == nullptr) continue;
    for (const Edge& e : v.merge->inputs()) {
      if (e.node->def().Is(OpRole::kNextIteration)) v.next = e.node;
    }
    for (Node* user : users_[v.merge->id()]) {
      if (IsOfLoop(*user) && user->input(0) == Edge{v.merge, 0}) {
        v.choose = user;
      }
    }
    if (v.choose == nullptr) continue;
    for (Node* user : users_[v.choose->id()]) {
      if (user->def().Is(OpRole::kExit)) v.exit = user;
    }
  }
}

const FlowMap::Guard* FlowMap::NewGuard(const Edge& pred, int side,
                                        const Guard* around) {
  const Edge behind = BehindIdentities(pred);
  const Guard*& guard = guard_of_[{behind, {side, around}}];
  if (guard == nullptr) {
    guards_.push_back({behind, side, around, around ? around->depth + 1 : 1});
    guard = &guards_.back();
  }
  return guard;
}

// Whose guards decide that of `n`; of what it waits for the index is -1.
std::vector<Edge> FlowMap::GuardingInputs(const Node& n) const {
  std::vector<Edge> found;
  if (const Loop* left = LeftBy(n)) {
    // A loop runs where what enters it does.
    for (const Loop::Variable& v : left->variables) {
      found.push_back(v.enter->input(0));
    }
    for (const Node* c : left->constants) found.push_back(c->input(0));
    return found;
  }
  // Within its loop a value that enters has none.
  if (n.def().Is(OpRole::kEnter)) return found;
  for (const Edge& e : n.inputs()) {
    if (!e.node->def().Is(OpRole::kNextIteration)) found.push_back(e);
  }
  for (Node* c : n.control_inputs()) found.push_back({c, -1});
  return found;
}

const FlowMap::Guard* FlowMap::GuardOf(const Edge& e) const {
  auto it = switched_.find(e);
  return it != switched_.end() ? it->second : At(*e.node).guard;
}

const FlowMap::Guard* FlowMap::GuardFromInputs(const Node& n) const {
  const bool merges = n.def().Is(OpRole::kMerge);
  const Guard* guard = nullptr;
  bool first = true;
  for (const Edge& e : GuardingInputs(n)) {
    if (!merges) {
      guard = Deeper(guard, GuardOf(e));
    } else if (e.index >= 0) {
      guard = first ? GuardOf(e) : CommonOf(guard, GuardOf(e));
      first = false;
    }
  }
  return guard;
}

// Inputs first.
void FlowMap::FindGuards() {
  std::vector<char> state(places_.size());
  std::vector<std::pair<const Node*, std::vector<Edge>>> stack;
  for (int i = 0; i < graph_.num_nodes(); ++i) {
    if (state[i]) continue;
    state[i] = 1;
    stack.push_back({graph_.node(i), GuardingInputs(*graph_.node(i))});
    while (!stack.empty()) {
      auto& [n, inputs] = stack.back();
      if (!inputs.empty()) {
        const Node* next = inputs.back().node;
        inputs.pop_back();
        if (state[next->id()]) continue;
        state[next->id()] = 1;
        stack.push_back({next, GuardingInputs(*next)});
        continue;
      }
      Place& place = places_[n->id()];
      place.guard = GuardFromInputs(*n);
      if (n->def().Is(OpRole::kSwitch) && !IsOfLoop(*n)) {
        Node* node = const_cast<Node*>(n);
        for (int side = 0; side < 2; ++side) {
          switched_[{node, side}] = NewGuard(n->input(1), side, place.guard);
        }
      }
      stack.pop_back();
    }
  }
}

}  // namespace headrace
