#include "runtime/wait_order.h"

#include <algorithm>
#include <bit>

#include "op/processor.h"
#include "op/registry.h"
#include "op/waiting.h"

namespace headrace {
namespace {

// Waiting nodes of one plan: their order takes a bit a pair. A plan of more
// runs them one by one.
constexpr size_t kMostWaiters = 1024;

// Whether the node has its turn among the effects of the body.
bool IsInTurn(const WaitTracker::Body& body, const Node& n) {
  return body.serial && n.def().is_stateful && !n.def().Has(kMeetsOthers);
}

}  // namespace

int32_t WaitOrder::Add(WaitSet behind) {
  const int32_t waiter = size();
  std::vector<uint64_t> before(waiter / 64 + 1);
  for (const int32_t w : behind) {
    for (size_t i = 0; i < before_[w].size(); ++i) before[i] |= before_[w][i];
    before[w / 64] |= uint64_t{1} << (w % 64);
  }
  before_.push_back(std::move(before));
  behind_.push_back(std::move(behind));
  return waiter;
}

void WaitOrder::Insert(WaitSet* set, int32_t waiter) const {
  for (const int32_t w : *set) {
    if (w == waiter || (w > waiter && Follows(w, waiter))) return;
  }
  const auto covered = [&](int32_t w) {
    return w < waiter && Follows(waiter, w);
  };
  set->erase(std::remove_if(set->begin(), set->end(), covered), set->end());
  set->insert(std::lower_bound(set->begin(), set->end(), waiter), waiter);
}

void WaitOrder::Join(WaitSet* set, const WaitSet& more) const {
  if (set->empty()) {
    *set = more;
    return;
  }
  for (const int32_t w : more) Insert(set, w);
}

int WaitOrder::CountBefore(const WaitSet& set) const {
  if (set.empty()) return 0;
  std::vector<uint64_t> all(set.back() / 64 + 1);
  for (const int32_t w : set) {
    for (size_t i = 0; i < before_[w].size(); ++i) all[i] |= before_[w][i];
    all[w / 64] |= uint64_t{1} << (w % 64);
  }
  int count = 0;
  for (const uint64_t bits : all) count += std::popcount(bits);
  return count;
}

bool WaitFinder::MayWait(const ResolvedOp& op) {
  if (op.def().Has(kMayWait)) return true;
  if (!CallsFunctions(op.def())) return false;
  for (const auto& [name, value] : op.attrs()) {
    if (const auto* f = std::get_if<FuncRef>(&value)) {
      if (MayWait(*f)) return true;
    } else if (const auto* all = std::get_if<std::vector<FuncRef>>(&value)) {
      for (const FuncRef& f : *all) {
        if (MayWait(f)) return true;
      }
    }
  }
  return false;
}

bool WaitFinder::MayWait(const FuncRef& ref) {
  const StatusOr<FunctionPtr> f = FindFunction(library_, ref.name);
  if (!f.ok()) return false;  // who calls it says so
  // Known before it is looked at, as functions may call themselves.
  if (const auto [it, added] = known_.emplace(f->get(), false); !added) {
    return it->second;
  }
  const Graph& body = *(*f)->body;
  bool waits = false;
  for (int i = 0; i < body.num_nodes() && !waits; ++i) {
    waits = MayWait(body.node(i)->op());
  }
  known_[f->get()] = waits;
  return waits;
}

bool WaitTracker::Begin(std::vector<Node*>* nodes,
                        absl::Span<const Edge> feeds) {
  fed_.insert(feeds.begin(), feeds.end());
  HashSet<const Node*> early;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* n) {
    if (early.insert(n).second) open.push_back(n);
  };
  for (const Node* n : *nodes) {
    if (finder_.MayWait(n->op())) visit(n);
  }
  if (open.empty() || open.size() > kMostWaiters) return false;
  while (!open.empty()) {
    const Node* n = open.back();
    open.pop_back();
    for (const Edge& e : n->inputs()) {
      if (e.node && !fed_.contains(e)) visit(e.node);
    }
    for (const Node* c : n->control_inputs()) visit(c);
  }
  std::stable_partition(nodes->begin(), nodes->end(),
                        [&](const Node* n) { return early.contains(n); });
  return true;
}

std::optional<WaitTracker::Awaited> WaitTracker::AwaitedBy(const Node& n) {
  for (Edge e : n.inputs()) {
    const DType type = e.node->output_type(e.index);
    if (type != DType::kResource && !IsRef(type)) continue;
    while (e.index == 0 && e.node->def().Has(OpTrait::kIdentity)) {
      e = e.node->input(0);
    }
    return Awaited{&n.def(), e, ""};
  }
  const auto* name = n.op().attrs().Get<std::string>("shared_name");
  if (name == nullptr) return std::nullopt;
  return Awaited{&n.def(), Edge{}, name->empty() ? n.name() : *name};
}

int32_t WaitTracker::Add(const Node& n, WaitSet* behind) {
  const std::optional<Awaited> awaited = AwaitedBy(n);
  if (awaited) {
    const auto it = last_.find(*awaited);
    if (it != last_.end()) order_.Join(behind, {it->second});
  }
  const int32_t waiter = order_.Add(*behind);
  if (awaited) last_[*awaited] = waiter;
  return waiter;
}

void WaitTracker::JoinNode(const Body& body, const Node* n,
                           WaitSet* set) const {
  if (const auto it = body.behind.find(n); it != body.behind.end()) {
    order_.Join(set, it->second);
  }
}

WaitSet WaitTracker::BehindOf(const Body& body, const Node& n) const {
  WaitSet set = body.entry;
  for (const Edge& e : n.inputs()) {
    if (!fed_.contains(e)) JoinNode(body, e.node, &set);
  }
  for (const Node* c : n.control_inputs()) JoinNode(body, c, &set);
  if (IsInTurn(body, n)) order_.Join(&set, body.effects);
  return set;
}

void WaitTracker::Wrote(Body* body, const Node& n, WaitSet behind,
                        int32_t waiter) const {
  if (waiter >= 0) behind = {waiter};  // which follows the others
  if (behind.empty()) return;
  if (IsInTurn(*body, n)) order_.Join(&body->effects, behind);
  body->behind[&n] = std::move(behind);
}

void WaitTracker::WroteBody(Body* body, const Node& n,
                            const Body& inner) const {
  WaitSet all = inner.entry;
  order_.Join(&all, inner.effects);
  for (const auto& [node, behind] : inner.behind) order_.Join(&all, behind);
  Wrote(body, n, std::move(all), -1);
}

}  // namespace headrace
