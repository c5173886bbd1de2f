// Transposing a matrix, one thread; by tiles held in registers.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// y[c * y_stride + r] = x[r * x_stride + c] for r < rows and c < columns;
// strides count elements.
using TransposeLoop = void (*)(const void* x, int64_t x_stride, void* y,
                               int64_t y_stride, int64_t rows, int64_t columns);

#define HR_TRANSPOSE_TABLES(level)                                 \
  namespace level {                                                \
  /* For elements of 1, 2, 4, 8 or 16 bytes; nullptr otherwise. */ \
  TransposeLoop FindTranspose(int size);                           \
  }
HR_FOR_EACH_LEVEL(HR_TRANSPOSE_TABLES)
#undef HR_TRANSPOSE_TABLES

}  // namespace headrace
