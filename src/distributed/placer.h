// On which device of a cluster each node of a graph runs.
#pragma once

#include <vector>

#include "base/device_name.h"
#include "base/hash_map.h"
#include "graph/graph.h"

namespace headrace::distributed {

struct ClusterDevice {
  DeviceName name;           // full
  uint64_t incarnation = 0;  // of its task's process
};

// What nodes may be placed on.
struct Devices {
  std::vector<ClusterDevice> all;
  DeviceName standard;  // among them: of nodes that name none
  // Nodes whose device is not there go to another one of the task that they
  // name.
  bool soft = false;
};

// The device of each of `nodes`, which are those that a run needs. Nodes that
// share a resource or a reference, and those that are colocated ("_class"), are
// together. InvalidArgument with upstream's texts for names that are none, that
// nobody has, and that contradict each other.
StatusOr<HashMap<const Node*, const ClusterDevice*>> Place(
    const Graph& graph, absl::Span<Node* const> nodes, const Devices& devices);

}  // namespace headrace::distributed
