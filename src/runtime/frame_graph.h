// The part of a graph with control flow of TensorFlow 1 that a run needs,
// sorted into frames.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/graph.h"
#include "op/kernel.h"
#include "runtime/frame_islands.h"

namespace headrace {

// True for Switch, Merge, Enter, Exit, NextIteration and their kin.
bool IsFrameOp(const OpDef& op);
// True for nodes whose values may be dead: those, and what comes from another
// device that does not say that it is alive.
bool MayBeDead(const Node& n);

// Immutable; all numbers are positions in the vectors that the names tell.
struct FrameGraph {
  struct Target {
    int node = 0;
    int input = 0;  // data input, or -1: a control input
  };
  // Reads the value behind a reference, where that is what is wanted.
  struct Reader {
    ResolvedOpPtr op;
    std::shared_ptr<Kernel> kernel;  // null: the value itself comes
  };
  struct Source {
    int feed = -1;  // a fed value, else the place in the iteration's values
    int value = -1;
    Reader reader;
  };
  struct FrameNode {
    ResolvedOpPtr op;
    std::shared_ptr<Kernel> kernel;  // null for frame ops
    std::string name;             // none of an island, whose nodes have theirs
    OpRole role = OpRole::kNone;  // of a frame op, or an end of an edge
    bool constant = false;        // Enter: the value goes to every iteration
    int frame = -1;               // where it runs
    int out_frame = -1;           // where its outputs are seen
    int slot = 0;                 // among the frame's nodes
    int waiting = 0;              // inputs that must arrive: data and control
    int control_waiting = 0;
    std::vector<Source> inputs;
    std::vector<std::vector<Target>> targets;  // an output; the last: control
    std::vector<std::vector<int>> fetches;     // an output: which fetches
  };
  struct Frame {
    int parent = -1;
    std::string name;
    std::vector<int> waiting;  // a node: what it waits for at first
    int values = 0;
    int enters = 0;
    std::vector<int> exits;
  };
  std::vector<FrameNode> nodes;
  std::vector<Frame> frames;       // 0 is the root
  std::vector<int> fetched_feeds;  // a fetch: the feed it is, or -1
  int num_fetches = 0;
  std::vector<Reader> fetch_readers;  // one a fetch

  // Of `islands` and of single nodes, together all that fetches and targets
  // need. InvalidArgument where frames contradict each other; NotFound where an
  // op has no kernel.
  static StatusOr<FrameGraph> Make(absl::Span<Node* const> single,
                                   absl::Span<const FrameIsland> islands,
                                   absl::Span<const Edge> feeds,
                                   absl::Span<const Edge> fetches);
};

}  // namespace headrace
