// Whether the devices that nodes name are there: a host's processors, which
// tf.config may split into several logical ones.
#pragma once

#include "graph/graph.h"

namespace headrace {

// InvalidArgument, with upstream's text, for the first node that fetches and
// targets need whose device this process, with so many processors (at least
// one), does not have.
Status CheckPlacement(absl::Span<const Edge> fetches,
                      absl::Span<Node* const> targets, int processors);

}  // namespace headrace
