// Named gradients as functions: what a file can hold of them.
#pragma once

#include <vector>

#include "autodiff/function_gradient.h"
#include "autodiff/named_gradient.h"

namespace headrace {

// Immutable.
struct GradientFunction {
  // Takes the gradients of all outputs of a node, then `captures`.
  FunctionPtr function;
  // Outputs of the graph that the node is in, and eager values.
  std::vector<Value> captures;
  // Where the gradients of the node's inputs stand among the results.
  std::vector<FunctionGradient::Places> places;
};

// The gradient that `node` of f's body asks for by name. NotFound where nothing
// has the name; InvalidArgument where it reads values of other graphs that `f`
// did not capture; what the gradient's own code runs into.
StatusOr<GradientFunction> AsGradientFunction(const Function& f,
                                              const Node& node,
                                              StringView name);

// The gradient that calls the function.
NamedGradient GradientCalling(GradientFunction gradient);

}  // namespace headrace
