// Gradients that programs register for ops which have none:
// tf.RegisterGradient.
#pragma once

#include "op/gradient.h"

namespace headrace {

// Calls the gradient that is registered under the op's name, whose status
// *status becomes; false where there is none. Set once, at start (by autodiff,
// which keeps them); CallGradient asks it.
using RegisteredGradients = bool (*)(GradientContext& g, Status* status);
bool SetRegisteredGradients(RegisteredGradients ask);

}  // namespace headrace
