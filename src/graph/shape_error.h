// What a graph says of shapes that do not fit. Shape rules speak as kernels do,
// since eager calls run them first; while a graph is made, upstream names the
// rule that is broken, the node and what was known of its inputs.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "graph/graph.h"
#include "op/shape_context.h"

namespace headrace {

// The refusal for what the op's rule said; thread-safe, no side effects.
ShapeRefusal RefusalInGraph(const ShapeContext& c, StringView rule_text);

// What only graphs refuse, of shapes that the op's rule took: windows larger
// than what they slide over, axes out of range. An empty text: nothing.
ShapeRefusal RefusedOnlyInGraph(const ShapeContext& c);

// "{{node add}} = AddV2[T=DT_FLOAT](x, y)".
std::string NodeSummary(const Node& n);

// Applies RefusedOnlyInGraph; the error is as below.
Status CheckShapesInGraph(const Node& n, const ShapeContext& c);

// The rule's error `s` as InvalidArgument, in a graph's words, with " for
// '<node>' with input shapes: [2,3], [4]." behind it; other codes than
// InvalidArgument and FailedPrecondition come back as they are.
Status ShapeErrorInGraph(const Node& n, const ShapeContext& c, const Status& s);

}  // namespace headrace
