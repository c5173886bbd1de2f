// Names of functions in the graphs of SavedModels.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "base/hash_map.h"
#include "base/status.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace headrace {

// "__inference_f_33" -> "__inference_f": the number counted functions in the
// process that wrote it.
StringView WithoutNumber(StringView name);

using FunctionNames = HashMap<std::string, std::string>;
// Tells `f` what a node may call: its op, and the functions in its attributes.
void EachCalledName(tensorflow::NodeDef* node,
                    absl::FunctionRef<void(std::string* name)> f);
// Gives the functions that a node calls, as its op or in its attributes, the
// names that `names` has for theirs.
void RenameCalls(const FunctionNames& names, tensorflow::NodeDef* node);

}  // namespace headrace
