// Loops in the form by which TensorFlow differentiates them.
#pragma once

#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace {

// Gives the loops of `model`'s functions a counter of their turns and a bound,
// the first two variables that TensorFlow's gradient of a loop reads: it takes
// the last count for the number of turns to go back, and the bound (-1, none)
// for how much its stacks may hold. Loops of files of TensorFlow's, which have
// them, stay as they are.
void CountLoops(tensorflow::MetaGraphDef* model);

}  // namespace headrace
