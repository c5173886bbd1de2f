// What steps of a graph's runs read and where they were placed, in the form
// that tools of TensorFlow show.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "graph/graph.h"

namespace tensorflow {
class StepStats;
}

namespace headrace {

// Puts the inputs of nodes that `graph` has into the labels of their steps:
// "name = Op()" becomes "name = Op(a, b:1, ^c)", as upstream writes it. What
// the graph does not have (nodes of functions, what plans add) stays as it is.
// The caller sees to it that the graph is not changed meanwhile.
void LabelInputs(const Graph& graph, tensorflow::StepStats* stats);

// Sorts steps by the processors that their nodes name, in the graph or in one
// of its functions; `devices` are the processors' full names, of which the
// first has all other steps.
void SortByDevice(const Graph& graph, absl::Span<const std::string> devices,
                  tensorflow::StepStats* stats);

}  // namespace headrace
