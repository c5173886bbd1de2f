// What a graph says of shapes that do not fit: the refusal of the op's shape
// rule, the node and what was known of its inputs.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "op/shape_context.h"

namespace headrace {

// "{{node add}} = AddV2[T=DT_FLOAT](x, y)".
std::string NodeSummary(const Node& n);

// The rule's error `s` as InvalidArgument, in c.refusal()'s words, with " for
// '<node>' with input shapes: [2,3], [4]." behind it; other codes than
// InvalidArgument and FailedPrecondition come back as they are.
Status ShapeErrorInGraph(const Node& n, const ShapeContext& c, const Status& s);

}  // namespace headrace
