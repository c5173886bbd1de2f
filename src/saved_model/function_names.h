// Names of functions in the graphs of SavedModels.
#pragma once

#include <string>

#include "base/hash_map.h"
#include "base/status.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace {

// "__inference_f_33" -> "__inference_f": the number counted functions in the
// process that wrote it.
StringView WithoutNumber(StringView name);

using FunctionNames = HashMap<std::string, std::string>;
// Gives the functions that a node calls, as its op or in its attributes, the
// names that `names` has for theirs.
void RenameCalls(const FunctionNames& names, tensorflow::NodeDef* node);

}  // namespace headrace
