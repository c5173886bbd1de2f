// Products of few rows with a matrix that is packed first, as the turns of
// recurrent layers have them: the same matrix in each.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ops/math/products/gemm.h"
#include "tensor/tensor.h"

namespace headrace {

// Whether a product whose B lies transposed (b_row is 1) is to be made so: by
// its sizes alone, as the bits must not depend on who packed B.
bool PaysToPack(const GemmDims& d);

// Columns of a panel, and what a floating-point operation on packed operands
// takes at a guess.
int64_t PanelWidth();
inline constexpr double kPanelNsPerFlop = 1.0 / 100;

// B in panels of so many columns as the inner loop takes; what is missing in
// the last one is 0. A panel has d.k rows.
StatusOr<Tensor> PackPanels(const GemmDims& d, const float* b);

// Rows [begin, end) of a panel's `columns` columns of C, which `c` is the first
// of; added to what is there with `add`. On this thread. A has a unit stride.
void PanelRows(const GemmDims& d, const float* a, const float* panel, float* c,
               int64_t begin, int64_t end, int columns, bool add);

// C = A * B of what PackPanels made; `done` may be null. A has a unit stride.
void PanelGemm(const GemmDims& d, const float* a, const Tensor& panels,
               float* c, GemmRowsDone* done);

}  // namespace headrace
