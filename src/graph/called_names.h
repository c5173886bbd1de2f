// Names of functions in the nodes of a GraphDef.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace {

// Tells `f` what a node may call, to be read or changed: its op, and the
// functions in its attributes and in theirs.
void EachCalledName(tensorflow::NodeDef* node,
                    absl::FunctionRef<void(std::string* name)> f);

}  // namespace headrace
