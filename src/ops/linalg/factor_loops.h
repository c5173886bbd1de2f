// The inner loops of triangular factors and of solving with them, one set a
// level of the instruction set. Matrices are row-major parts of larger ones.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// T is float or double.
template <typename T>
struct FactorLoops {
  // Factors a panel of `rows` rows and `size` columns in place with partial
  // pivoting: row j was swapped with row pivots[j] >= j, within the panel.
  void (*panel)(T* a, int64_t stride, int64_t rows, int64_t size,
                int64_t* pivots);
  // Rows of x[n, m] from a triangle of t[n, n], by forward or backward
  // substitution. `unit`: the diagonal is ones.
  void (*substitute)(const T* t, int64_t t_stride, int64_t n, T* x,
                     int64_t x_stride, int64_t m, bool forward, bool unit);
};

// Those of this machine.
template <typename T>
const FactorLoops<T>& LoopsForFactors();

// What the files of a level give away.
template <CpuLevel kLevel>
const FactorLoops<float>* FactorFloat();
template <CpuLevel kLevel>
const FactorLoops<double>* FactorDouble();

}  // namespace headrace
