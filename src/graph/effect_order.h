// The order in which a function's effects happen, as edges between its nodes.
#pragma once

#include <vector>

#include "graph/function.h"

namespace headrace {

// By node of the body: the nodes that it has to follow, so that what touches
// one resource, and what has an effect on the world, happens in the order in
// which it was recorded. Here plans see to that; other engines go by control
// inputs alone. Empty lists for bodies with circles (loops of TensorFlow 1).
std::vector<std::vector<Node*>> EffectOrder(const Function& f);

}  // namespace headrace
