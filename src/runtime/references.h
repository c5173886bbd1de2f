// References of TensorFlow 1's variables, where programs and frames meet them:
// what runs is a handle, and an op that does not take the reference itself gets
// the value.
#pragma once

#include <optional>
#include <vector>

#include "base/hash_map.h"
#include "graph/graph.h"
#include "op/kernel.h"

namespace headrace {

// The node's op with a name for its state: state that is given none has its
// node's (variables made by handle alone excepted, as upstream does).
StatusOr<ResolvedOpPtr> NamedOp(const Node& n);

// Whether input i of the op wants the reference itself, not its value.
bool TakesReference(const ResolvedOp& op, int i);

// The op that reads what is behind a reference to tensors of that dtype.
StatusOr<ResolvedOpPtr> ReaderOfReference(DType dtype);

// Copies of variables behind references. In TensorFlow an Identity of a
// reference is no copy but the variable's memory, and programs count on it: who
// takes it behind an assignment, by edges, gets what was assigned. Called in
// the order in which a program is written.
class ReferenceAliases {
 public:
  // The node takes the value behind reference `e`.
  void Read(const Node& n, const Edge& e);
  // The node changes what is behind reference `e`.
  void Write(const Node& n, const Edge& e);
  // The reference behind which a later value is than that of copy `e`, for
  // these nodes, which run as one: it was assigned since, and they come behind
  // that.
  std::optional<Edge> Stale(absl::Span<const Node* const> nodes, const Edge& e);

 private:
  struct Copy {
    Edge reference;
    size_t writes;  // of the variable, at that time
  };
  bool ComeBehind(absl::Span<const Node* const> nodes,
                  absl::Span<const Node* const> writers);

  HashMap<const Node*, Copy> copies_;
  // Of the node that made the variable.
  HashMap<const Node*, std::vector<const Node*>> writers_;
  int64_t looked_at_ = 0;  // nodes, in all searches
};

}  // namespace headrace
