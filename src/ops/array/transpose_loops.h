// Transposing a matrix, one thread; by tiles held in registers.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// y[c * y_stride + r] = x[r * x_stride + c] for r < rows and c < columns;
// strides count elements.
using TransposeLoop = void (*)(const void* x, int64_t x_stride, void* y,
                               int64_t y_stride, int64_t rows, int64_t columns);

// For elements of 1, 2, 4, 8 or 16 bytes; nullptr otherwise.
template <CpuLevel kLevel>
TransposeLoop FindTranspose(int size);

}  // namespace headrace
