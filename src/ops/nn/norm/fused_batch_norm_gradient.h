// Gradients of FusedBatchNorm and of its gradient ops.
#pragma once

#include "op/op.h"

namespace headrace {

Status FusedBatchNormGradient(GradientContext& g);
// Made of plain ops, so that it has derivatives of any order.
Status FusedBatchNormGradGradient(GradientContext& g);

}  // namespace headrace
