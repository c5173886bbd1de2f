#include "runtime/references.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "op/registry.h"

namespace headrace {

StatusOr<ResolvedOpPtr> NamedOp(const Node& n) {
  if (!n.def().is_stateful || n.def().Has(OpTrait::kUnnamedState))
    return n.op_ptr();
  const std::string* shared = n.op().attrs().Get<std::string>("shared_name");
  if (shared == nullptr || !shared->empty()) return n.op_ptr();
  AttrMap attrs = n.op().attrs();
  attrs.Set("shared_name", n.name());
  return ResolveOp(n.def(), n.op().input_types(), attrs);
}

bool TakesReference(const ResolvedOp& op, int i) {
  const auto& defs = op.def().inputs;
  for (size_t d = 0; d < defs.size(); ++d) {
    ArgRange range = op.input_range(static_cast<int>(d));
    if (i >= range.begin && i < range.end) return defs[d].is_ref;
  }
  return false;
}

StatusOr<ResolvedOpPtr> ReaderOfReference(DType dtype) {
  static const OpDef* const reader = [] {
    for (const OpDef* op : OpsOfRole(OpRole::kReadVariable)) {
      if (op->inputs[0].is_ref) return op;
    }
    return static_cast<const OpDef*>(nullptr);
  }();
  if (reader == nullptr) return Internal("no op reads references");
  return ResolveOp(*reader, {RefType(dtype)}, {{"T", dtype}});
}

namespace {

// Nodes that a plan looks at in order to find what comes behind an assignment:
// tens of milliseconds. Behind that, all that is written later does.
constexpr int64_t kMostLookedAt = 1 << 20;

// The node that made the variable behind a reference.
const Node* MakerOf(Edge e) {
  while (e.node->num_inputs() > 0 && TakesReference(e.node->op(), 0)) {
    e = e.node->input(0);
  }
  return e.node;
}

}  // namespace

void ReferenceAliases::Read(const Node& n, const Edge& e) {
  if (!n.def().Has(OpTrait::kIdentity) || n.num_inputs() != 1) return;
  copies_[&n] = {e, writers_[MakerOf(e)].size()};
}

void ReferenceAliases::Write(const Node& n, const Edge& e) {
  writers_[MakerOf(e)].push_back(&n);
}

std::optional<Edge> ReferenceAliases::Stale(absl::Span<const Node* const> nodes,
                                            const Edge& e) {
  const auto copy = copies_.find(e.node);
  if (copy == copies_.end()) return std::nullopt;
  const Edge& reference = copy->second.reference;
  const auto& writers = writers_[MakerOf(reference)];
  const auto later = absl::MakeSpan(writers).subspan(copy->second.writes);
  if (later.empty() || !ComeBehind(nodes, later)) return std::nullopt;
  return reference;
}

bool ReferenceAliases::ComeBehind(absl::Span<const Node* const> nodes,
                                  absl::Span<const Node* const> writers) {
  int oldest = writers[0]->id();
  for (const Node* w : writers) oldest = std::min(oldest, w->id());
  HashSet<const Node*> seen(nodes.begin(), nodes.end());
  std::vector<const Node*> open(nodes.begin(), nodes.end());
  bool found = false;
  while (!open.empty()) {
    const Node* at = open.back();
    open.pop_back();
    if (++looked_at_ > kMostLookedAt) return true;
    const auto look = [&](const Node* before) {
      // Edges go from smaller ids to larger ones, but for nodes that have grown
      // and loops back: behind those alone, a copy stays what it was.
      if (before == nullptr || before->id() < oldest) return;
      if (absl::c_linear_search(writers, before)) found = true;
      if (seen.insert(before).second) open.push_back(before);
    };
    for (const Edge& e : at->inputs()) look(e.node);
    for (const Node* c : at->control_inputs()) look(c);
    if (found) return true;
  }
  return false;
}

}  // namespace headrace
