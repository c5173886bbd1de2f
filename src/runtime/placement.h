// Whether the devices that nodes name are there.
#pragma once

#include "graph/graph.h"

namespace headrace {

// InvalidArgument, with upstream's text, for the first node that fetches and
// targets need whose device this process does not have.
Status CheckPlacement(absl::Span<const Edge> fetches,
                      absl::Span<Node* const> targets);

}  // namespace headrace
