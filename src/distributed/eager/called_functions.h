// The functions that travel with what calls them.
#pragma once

#include <map>
#include <string>

#include "graph/function.h"

namespace headrace::distributed {

using FunctionsByName = std::map<std::string, FunctionPtr>;

// Those that attributes name, and those that their bodies name, which are
// looked up in the libraries of bodies, else in `library` (may be null), else
// process-wide. NotFound where one is not there.
Status AddNamed(const AttrMap& attrs, const FunctionLibrary* library,
                FunctionsByName* all);
// The same of all nodes of a graph.
Status AddCalled(const Graph& graph, const FunctionLibrary* library,
                 FunctionsByName* all);

}  // namespace headrace::distributed
