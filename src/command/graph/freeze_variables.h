// Graphs whose variables are constants.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::command {

// Makes constants of the nodes of `graph` that `values` names, handles or
// references of variables or anything else of one output. What reads the
// variables then reads the constants, also in functions that get the handles:
// these get values, and are written anew. InvalidArgument where a node does
// anything else with a handle: it names the node.
Status FreezeVariables(const std::map<std::string, Tensor>& values,
                       tensorflow::GraphDef* graph);

}  // namespace headrace::command
