// Gradients of reductions over axes (input 0 reduced over input 1).
#pragma once

#include "op/op.h"

namespace headrace {

// The int32 shape of `x` with ones where the axes (a value) are: what a
// reduction's output has with keep_dims.
Value KeptShape(OpScope& s, const Value& x, const Value& axes);

Status SumGradient(GradientContext& g);
Status MeanGradient(GradientContext& g);
Status ProdGradient(GradientContext& g);
// Max and Min: elements equal to the result share its gradient.
Status ExtremeGradient(GradientContext& g);
Status NormGradient(GradientContext& g);

}  // namespace headrace
