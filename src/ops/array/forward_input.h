// What ops that hand their inputs on have in common.
#pragma once

#include "op/op.h"
#include "op/passes/simplify.h"

namespace headrace {

// Kernel: output i is input i.
Status ForwardInput(KernelContext& c);
// Shape rule: every output is like the input of its number, handles included.
Status SameShapes(ShapeContext& c);
// Gradient: each input's is its output's.
Status SameGradients(GradientContext& g);
// Simplification: what reads output i reads input i, but for references.
Status ForwardInputs(SimplifyContext& c);

}  // namespace headrace
