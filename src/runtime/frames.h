// Runs graphs with control flow of TensorFlow 1: values and dead tokens pass
// through frames and their iterations.
#pragma once

#include "runtime/program.h"

namespace headrace {

// Makes the program of one call, which runs `nodes` of `graph` (all that
// fetches and targets need) node by node, those that always run together as
// plans of their own (frame_islands.h). A node is run once an iteration, when
// its inputs are there; it is skipped when one is dead. An error at a run:
// "Retval[i] does not have value" for a fetch that is dead.
StatusOr<Program> MakeFrameProgram(const Graph& graph,
                                   absl::Span<Node* const> nodes,
                                   absl::Span<const Edge> feeds,
                                   absl::Span<const Edge> fetches,
                                   const FunctionLibrary* library);

}  // namespace headrace
