// Convolutions of 3x3 windows by Winograd's F(2x2, 3x3): 16 products of
// matrices in place of 36 multiplications an output pixel and channel (Lavin
// and Gray, "Fast algorithms for convolutional neural networks", 2015). Its
// transforms only add and halve, so that errors are no larger than a direct
// sum's: not so of F(4x4, 3x3).
#pragma once

#include <memory>

#include "ops/nn/conv/convolution.h"

namespace headrace {

// Whether such a convolution is made so. Sizes alone decide, so eager calls,
// traced functions and loaded models agree to the bit, as do all numbers of
// threads; but not with HEADRACE_WINOGRAD=0 in the environment, which keeps
// direct sums.
bool WinogradTakes(const ConvGeometry& g);

// The convolution, of any number of images and sizes that WinogradTakes, with
// its filter transformed; `g` of which it takes the channels.
StatusOr<std::shared_ptr<const PreparedConv>> PrepareWinograd(
    const ConvGeometry& g, const float* filter, const FinishSteps& steps);

// The convolution of dy, with the filter turned round, that makes the input's
// gradient of one whose strides and dilations are 1.
ConvGeometry GradientAsConv(const ConvGeometry& g);

// The input's gradient so; `g`: of whose GradientAsConv WinogradTakes.
Status WinogradBackwardInput(const ConvGeometry& g, const float* filter,
                             const float* dy, float* dx);

}  // namespace headrace
