// Products of few rows with a transposed matrix, which is packed first, as the
// turns of a recurrent layer's gradient have them: the same matrix in each.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ops/math/products/gemm.h"
#include "tensor/tensor.h"

namespace headrace {

// Whether a product whose B lies transposed (b_row is 1) is to be made so: by
// its sizes alone, as the bits must not depend on who packed B.
bool PaysToPack(const GemmDims& d);

// B in panels of so many columns as the inner loop takes; what is missing in
// the last one is 0.
StatusOr<Tensor> PackPanels(const GemmDims& d, const float* b);

// C = A * B of what PackPanels made; `done` may be null. A has a unit stride.
void PanelGemm(const GemmDims& d, const float* a, const Tensor& panels,
               float* c, GemmRowsDone* done);

}  // namespace headrace
