// Walking a graph's nodes back from gradients that arrive.
#pragma once

#include <vector>

#include "autodiff/flow_map.h"
#include "autodiff/named_gradient.h"
#include "base/hash_map.h"
#include "graph/builder.h"
#include "op/backward.h"

namespace headrace {

struct FlowGradients;

// Gradients go through the current emitter, which need not be the graph's own
// builder. One walk, one thread.
class GraphBackward : public Backward<Edge> {
 public:
  // `origins`, for a copied graph: where its nodes with named gradients came
  // from; borrowed for the walk.
  explicit GraphBackward(std::shared_ptr<Graph> graph,
                         const Origins* origins = nullptr)
      : graph_(std::move(graph)), origins_(origins) {}

  // What gradients make with `builder` is placed with what they are of.
  void PlaceBy(GraphBuilder* builder) { builder_ = builder; }
  // What a call's gradient makes with `builder` is named in a scope of its own,
  // and is what upstream's graphs have there.
  void NameBy(GraphBuilder* builder) { names_ = builder; }
  // The gradients that one call makes are handed on when all of them are there.
  // Wants NameBy.
  void GateCalls() { gates_ = true; }
  // The graph has loops and branches of TensorFlow 1; borrowed for the walk.
  void GoThrough(FlowGradients* flow) { flow_ = flow; }
  // InvalidArgument where something sought is behind what goes round in a loop
  // that the gradients are made in: there is no one turn that it belongs to.
  Status CheckNotAround();
  // Nothing is sought behind `e`.
  void StopAt(const Edge& e) { stop_.insert(e); }
  // Walks back from all that arrived.
  Status Back();

 private:
  Status BackThrough(Node* n);
  // What stands for `n` in the walk: one of its Exits for a whole loop.
  Node* UnitOf(Node* n) const;
  // What it reads: of a loop, what enters it.
  absl::InlinedVector<Edge, 4> InputsOf(const Node* unit) const;
  Status BackThroughCall(Node* n);
  // Back through all turns of a loop at once.
  Status BackThroughLoop(const FlowMap::Loop& loop);
  // Where what belongs to a branch is made.
  StatusOr<FlowContext*> ContextOf(const FlowMap::Guard* guard);
  // Whether something sought is at `e` or behind it, with a gradient to go
  // there.
  bool LeadsThrough(const Edge& e) const;
  // The nodes between sought edges and arrivals, users first.
  std::vector<Node*> Between();

  Status CallGradient(const Node* n, GradientContext& g);
  // Where names matter: in a scope of the node's name.
  void NameZeros(GradientContext& g);
  Status CallNamed(const Node* n, std::vector<bool> wanted, GradientContext& g);
  Status Gate(GradientContext& g);
  Gradient SumOf(absl::Span<const Gradient> parts);
  Gradient Sum(const Edge& e, absl::Span<const Gradient> parts) override;

  std::shared_ptr<Graph> graph_;
  const Origins* origins_;
  GraphBuilder* builder_ = nullptr;
  GraphBuilder* names_ = nullptr;
  bool gates_ = false;
  FlowGradients* flow_ = nullptr;
  HashMap<const FlowMap::Guard*, FlowContext*> contexts_;
  friend class LoopWalk;
  HashSet<Edge> stop_;
  HashSet<const Node*> leads_;  // to something sought
};

}  // namespace headrace
