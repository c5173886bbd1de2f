// SavedModels, and graphs with checkpoints, as graphs of constants.
#pragma once

#include <string>
#include <vector>

#include "command/arguments.h"
#include "command/source.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace headrace::command {

struct FrozenGraph {
  tensorflow::GraphDef graph;
  // Nodes: the placeholders, and what gives the outputs.
  std::vector<std::string> inputs, outputs;
};

// The signature that the options choose (--tag_set, --signature_def) as a
// graph: a placeholder an input, under its name where no other node has it, a
// node an output of that output's name, variables as constants and calls
// written out. Unimplemented where it reads a table or other state.
StatusOr<FrozenGraph> FreezeModel(const Source& source, const Arguments& args);

// A graph with the variables that `outputs` need as constants, their values
// from the checkpoint, by name. Without a checkpoint (null) there may be no
// variables.
StatusOr<FrozenGraph> FreezeGraph(const Source& source,
                                  const Source* checkpoint,
                                  std::vector<std::string> outputs);

}  // namespace headrace::command
