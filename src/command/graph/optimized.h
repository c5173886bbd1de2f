// Graphs after the engine's passes, as graphs again.
#pragma once

#include <string>
#include <vector>

#include "command/graph/frozen.h"

namespace headrace::command {

// A graph without what `outputs` (none: what no node reads) do not need.
StatusOr<FrozenGraph> KeptGraph(const Source& source,
                                std::vector<std::string> outputs);

// The graph with constants folded, equal nodes merged and calls written out.
// Placeholders and `outputs` keep their names. Unimplemented where something in
// it has no form in graphs once a plan was made of it (control flow and
// variables of TensorFlow 1).
StatusOr<tensorflow::GraphDef> Optimized(
    const tensorflow::GraphDef& graph, const std::vector<std::string>& outputs);

}  // namespace headrace::command
