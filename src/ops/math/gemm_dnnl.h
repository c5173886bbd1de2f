// Large products of floats by oneDNN, split over our own threads.
#pragma once

#include "ops/math/gemm.h"

namespace headrace {

// C = A * B, with `done` (may be null) told of complete rows. False, with
// nothing done, when the product is small or its strides are not for oneDNN.
// The cut into tasks, and so every bit, depends on the sizes alone.
bool DnnlGemm(const GemmDims& dims, const float* a, const float* b, float* c,
              GemmRowsDone* done);

}  // namespace headrace
