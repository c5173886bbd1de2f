// The order in which a function's effects happen, as edges between its nodes.
#pragma once

#include <vector>

#include "graph/function.h"

namespace headrace {

// What touches resources or has an effect on the world happens in the order in
// which it was recorded. Here plans see to that; other engines go by control
// inputs alone.
struct Effects {
  std::vector<std::vector<Node*>> after;  // by node: those it has to follow
  std::vector<Node*> all;                 // in order
};
// Nothing is ordered in bodies with circles (loops of TensorFlow 1).
Effects EffectsOf(const Function& f);

}  // namespace headrace
