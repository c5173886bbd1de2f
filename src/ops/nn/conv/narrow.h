// Convolutions of few input channels, as a network's first ones are: the
// numbers of a line that a window sees lie one behind the other, so that an
// output pixel is a sum over whole lines of a window, of which the next pixel's
// overlap.
#pragma once

#include <memory>

#include "ops/nn/conv/convolution.h"

namespace headrace {

// Whether such a convolution is made so: by its sizes, on processors with
// vectors of 16 floats.
bool NarrowTakes(const ConvGeometry& g);

// The convolution, of any number of images, for a filter of these sizes.
StatusOr<std::shared_ptr<const PreparedConv>> PrepareNarrow(
    const ConvGeometry& g, const float* filter, const FinishSteps& steps);

}  // namespace headrace
