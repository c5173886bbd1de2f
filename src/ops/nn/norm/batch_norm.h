// Batch normalisation of channels-last rows, in float.
#pragma once

#include "base/status.h"
#include "tensor/tensor.h"

namespace headrace {

// Mean and (biased) variance of each column of x[rows, channels]; rows > 0.
// Summed in fixed blocks.
Status ColumnMoments(const float* x, int64_t rows, int64_t channels,
                     float* mean, float* variance);
// sum[c] = sum of dy, dot[c] = sum of dy * (x - mean).
Status BackpropSums(const float* dy, const float* x, int64_t rows,
                    int64_t channels, const float* mean, float* sum,
                    float* dot);

}  // namespace headrace
