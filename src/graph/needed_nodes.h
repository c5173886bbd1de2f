// What results need of a graph.
#pragma once

#include <algorithm>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"

namespace headrace {

// The nodes that `results` and `targets` need, themselves among them, in the
// order of their ids. Edges are gone along where follow(edge) holds, edges
// that are not set yet never.
template <typename Follow>
std::vector<Node*> NeededNodes(absl::Span<const Edge> results,
                               absl::Span<Node* const> targets, Follow follow) {
  HashSet<const Node*> seen;
  std::vector<Node*> stack, needed;
  const auto visit = [&](Node* n) {
    if (seen.insert(n).second) stack.push_back(n);
  };
  const auto go = [&](const Edge& e) {
    if (e.node && follow(e)) visit(e.node);
  };
  for (const Edge& e : results) go(e);
  for (Node* n : targets) visit(n);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    needed.push_back(n);
    for (const Edge& e : n->inputs()) go(e);
    for (Node* c : n->control_inputs()) visit(c);
  }
  std::sort(needed.begin(), needed.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return needed;
}
inline std::vector<Node*> NeededNodes(absl::Span<const Edge> results,
                                      absl::Span<Node* const> targets) {
  return NeededNodes(results, targets, [](const Edge&) { return true; });
}

}  // namespace headrace
