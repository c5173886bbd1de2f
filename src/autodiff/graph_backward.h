// Walking a graph's nodes back from gradients that arrive.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "autodiff/named_gradient.h"
#include "graph/builder.h"
#include "op/backward.h"

namespace headrace {

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
  // Nothing is sought behind `e`.
  void StopAt(const Edge& e) { stop_.insert(e); }
  // Walks back from all that arrived.
  Status Back();

 private:
  Status BackThrough(Node* n);
  // Whether something sought is at `e` or behind it, with a gradient to go
  // there.
  bool LeadsThrough(const Edge& e) const;
  // The nodes between sought edges and arrivals, users first.
  std::vector<Node*> Between();

  Status CallGradient(const Node* n, GradientContext& g);
  Gradient Sum(const Edge& e, absl::Span<const Gradient> parts) override;

  std::shared_ptr<Graph> graph_;
  const Origins* origins_;
  GraphBuilder* builder_ = nullptr;
  absl::flat_hash_set<Edge> stop_;
  absl::flat_hash_set<const Node*> leads_;  // to something sought
};

}  // namespace headrace
