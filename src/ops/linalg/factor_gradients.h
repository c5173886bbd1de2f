// Gradients of the decompositions.
#pragma once

#include "op/op.h"

namespace headrace {

Status QrGradient(GradientContext& g);
Status SelfAdjointEigGradient(GradientContext& g);
Status EigGradient(GradientContext& g);
// For thin factors.
Status SvdGradient(GradientContext& g);

}  // namespace headrace
