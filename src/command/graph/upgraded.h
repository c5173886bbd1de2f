// Graphs of older versions in the ops of this one.
#pragma once

#include "base/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::command {

struct Upgrade {
  int replaced = 0;  // nodes with another op now
  int filled = 0;    // attributes that were not said
};

// Replaces ops that graphs of today may not use, in functions too, says every
// attribute that an op declares, and gives the graph today's version.
// Unimplemented, with all of their names, for ops that are unknown or have no
// replacement.
StatusOr<Upgrade> UpgradeGraph(tensorflow::GraphDef* graph);

}  // namespace headrace::command
