// Rows of a matrix in compressed rows times a dense matrix, one thread; parts
// of a row are summed up in registers.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// For rows r of [begin, end): y[r * n + j] = the sum over entries i of the row,
// in their order, of x[i] * b[cols[i] * n + j], j < n. T is float or double.
template <typename T>
using CsrRowsLoop = void (*)(const int32_t* rows, const int32_t* cols,
                             const T* x, int64_t begin, int64_t end, const T* b,
                             int64_t n, T* y);

template <CpuLevel kLevel>
CsrRowsLoop<float> FloatCsrRows();
template <CpuLevel kLevel>
CsrRowsLoop<double> DoubleCsrRows();

}  // namespace headrace
