// The inner loops of matrix products, one set a level of the instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// The loops for one element type. A tile is `rows` x `cols` of C, with
// 1 <= rows <= max_rows and 1 <= cols <= width.
template <typename T>
struct GemmLoops {
  int max_rows;  // rows a tile has at most
  int width;     // columns a tile has at most
  // What `small` takes at most.
  int small_columns, small_depth;
  // C (+)= A * B for one tile over k. A's element (i, p) lies at
  // a[i * a_row + p * a_col], where one of the strides is 1; B's row p at
  // b + p * b_row, `width` readable elements. Adds to C when `add`.
  void (*tile)(const T* a, int64_t a_row, int64_t a_col, const T* b,
               int64_t b_row, T* c, int64_t c_row, int rows, int cols,
               int64_t k, bool add);
  // The same, while k lines of the cache are fetched from `next` on; of floats
  // alone.
  void (*tile_and_fetch)(const T* a, int64_t a_row, int64_t a_col, const T* b,
                         int64_t b_row, T* c, int64_t c_row, int rows, int cols,
                         int64_t k, bool add, const void* next);
  // to[p * stride + i] = from[i * row + p * col] for i < n, p < k; columns
  // n .. stride of `to` become zero.
  void (*pack)(const T* from, int64_t row, int64_t col, int n, int64_t k, T* to,
               int stride);
  // The whole product C[m, n] = A * B of matrices that are hardly worth a call.
  void (*small)(const T* a, int64_t a_row, int64_t a_col, const T* b,
                int64_t b_row, int64_t b_col, T* c, int64_t c_row, int64_t m,
                int n, int k);
  // y[j] = sum over p of x[p * x_stride] * b[p * b_row + j], j < n.
  void (*row_times_matrix)(const T* x, int64_t x_stride, const T* b,
                           int64_t b_row, int64_t k, T* y, int64_t n);
  // y[j] = sum over p of x[p] * b[j * b_col + p], j < n.
  void (*dots)(const T* x, const T* b, int64_t b_col, int64_t k, T* y,
               int64_t n);
};

// Those of this machine. T is float or double.
template <typename T>
const GemmLoops<T>& LoopsForGemm();

// What the files of a level give away.
template <CpuLevel kLevel>
const GemmLoops<float>* FloatGemm();
template <CpuLevel kLevel>
const GemmLoops<double>* DoubleGemm();

}  // namespace headrace
