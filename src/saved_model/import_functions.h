// The functions of a SavedModel in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash_map.h"
#include "graph/function.h"

namespace tensorflow {
class GraphDef;
}

namespace headrace {

// Nodes ask for their gradient by `name`, new in the process; `function` is
// what the file calls the function that gives it.
struct ImportedGradient {
  std::string name, function;
};

// By the names that the SavedModel has for them. `holder` keeps all of them,
// also those that are only called by others.
struct ImportedFunctions {
  std::shared_ptr<Graph> holder;
  HashMap<std::string, FunctionPtr> by_name;
  std::vector<ImportedGradient> gradients;
};

// Makes the functions of `def`'s library that `roots` name, and those that they
// call. All get names that nothing in the process has, so that models loaded
// twice, or beside functions traced here, do not meet; so do resources that
// their nodes share by name, and gradients. `def` is changed: its nodes go, and
// what is not made. NotFound where a root is not there; Unimplemented, with all
// of their names, where ops are used that are not there.
StatusOr<ImportedFunctions> ImportFunctions(
    tensorflow::GraphDef* def, const std::vector<std::string>& roots,
    const std::string& folder);

// Gives the functions that the nodes of a graph for sessions call, and the
// resources that its nodes share by name, names that nothing in the process
// has. Functions that no node calls go. Unimplemented, with all of their names,
// where ops are used that are not there.
Status GiveNewNames(tensorflow::GraphDef* def, const std::string& folder);

}  // namespace headrace
