// What is known of integers in a graph that are computed from shapes: sizes
// that a trace knows stay known where others are not.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "tensor/tensor.h"

namespace headrace {

// What is known of the shape that an integer vector output holds.
Shape PartialShapeOf(const Edge& e);

// The value of the node's only output, a scalar or vector of sizes that are all
// known though not all inputs are (one size of a shape, say); else nothing.
std::optional<Tensor> PartialConstant(const Node* n);

}  // namespace headrace
