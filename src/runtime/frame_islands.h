// What runs as one plan within a graph that runs node by node.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "graph/graph.h"
#include "op/kernel.h"

namespace headrace {

class FunctionLibrary;

// Nodes of one frame that are alive together, each time or never, and of which
// no path leads out and in again: they may run at once, as one node that waits
// for all that they read.
struct FrameIsland {
  std::vector<Node*> nodes;     // each behind what it reads
  std::vector<Edge> inputs;     // outputs of other nodes, or fed
  std::vector<Node*> controls;  // other nodes that it waits for
  std::vector<Edge> outputs;    // that others read, or that are fetched
  ResolvedOpPtr op;             // from its inputs to its outputs
  std::shared_ptr<Kernel> kernel;
};

// The islands among `nodes`, all that fetches and targets need. `single` gets
// the nodes that are in none, without the constants that islands alone read:
// these have their own. None where something may wait: what one node waits for,
// others may have to be run for.
std::vector<FrameIsland> FindFrameIslands(absl::Span<Node* const> nodes,
                                          absl::Span<const Edge> feeds,
                                          absl::Span<const Edge> fetches,
                                          const FunctionLibrary* library,
                                          std::vector<Node*>* single);

}  // namespace headrace
