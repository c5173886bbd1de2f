// The graphs that Python code entered on this thread.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/builder.h"

namespace headrace::bind {

// The innermost graph that is no function's body, as a number; 0 where that
// is eager. Part of a traced function's key.
uint64_t ParentGraph();

// The builder that operations go to and those around it, innermost first, as
// far as bodies may capture from; none where they run at once.
std::vector<GraphBuilder*> EnteredBuilders();

}  // namespace headrace::bind
