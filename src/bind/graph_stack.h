// The graphs that Python code entered on this thread.
#pragma once

#include <cstdint>

namespace headrace::bind {

// The innermost graph that is no function's body, as a number; 0 where that
// is eager. Part of a traced function's key.
uint64_t ParentGraph();

}  // namespace headrace::bind
