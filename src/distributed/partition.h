// A graph cut into parts, one a task, by the devices of its nodes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "distributed/placer.h"
#include "graph/graph.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::distributed {

// What one task runs. Values that cross go by _Send and _Recv; so do those that
// the run is fed and that are fetched from it ("client_terminated").
struct Part {
  DeviceName task;
  tensorflow::GraphDef graph;  // every node names its full device
  // By number of the run's feed, or fetch: the key of its rendezvous.
  std::vector<std::pair<int, std::string>> feeds, fetches;
};

struct PartitionRequest {
  const Graph* graph = nullptr;
  // The graph as its client gave it: nodes by name, functions, versions.
  const tensorflow::GraphDef* def = nullptr;
  std::vector<Edge> feeds, fetches;
  std::vector<Node*> targets;
};

// In the order of the tasks' names. A fetch that is fed is in no part.
// Errors: those of Place; Unimplemented for loops of TensorFlow 1 that lie on
// several tasks.
StatusOr<std::vector<Part>> Partition(const PartitionRequest& request,
                                      const Devices& devices);

}  // namespace headrace::distributed
