// How many floating-point operations a node takes.
#pragma once

#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace headrace {

// By the shapes that the graph knows now; see CountFloatOps.
std::optional<int64_t> FloatOpsOf(const Node& node);

}  // namespace headrace
