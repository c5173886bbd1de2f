// Parts of GraphDefs that something needs.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::command {

// Drops the nodes that none of `outputs` ("x", "x:1") needs, control inputs
// included, and the functions that no node names any more. NotFound where a
// node is not there, whose name the error says. Returns how many nodes went.
StatusOr<int> KeepNeeded(const std::vector<std::string>& outputs,
                         tensorflow::GraphDef* graph);

// Drops the functions that no node, of the graph or of functions that it names,
// names.
void DropUnusedFunctions(tensorflow::GraphDef* graph);

}  // namespace headrace::command
