// What a function gives for certain arguments.
#pragma once

#include <optional>
#include <vector>

#include "graph/function.h"
#include "op/shape_context.h"

namespace headrace {

// The results of `f` where its arguments have the shapes and, as far as they
// are known, the values of the inputs that `c` sees: the body's shape rules are
// asked anew, with those of what it calls. None where that tells nothing new
// (all is known, or no input says more than the function's argument), where
// a rule refuses, and beyond some thousands of nodes.
std::optional<std::vector<CalledResult>> ResultsFor(const Function& f,
                                                    const ShapeContext& c);

}  // namespace headrace
