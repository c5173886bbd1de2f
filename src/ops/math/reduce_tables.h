// What reduce.cc asks of reduce_loops.cc: single-thread loops over one
// segment.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// Combining two values: of the kinds a segment is reduced by.
enum class Fold : uint8_t { kAdd, kMultiply, kMax, kMin };

// *y = fold of x[0 .. n), in a tree. x has the type, y the partial type.
using RowFold = void (*)(const void* x, void* y, int64_t n);
// y[c] = fold of x[r * stride + c] over r < rows, for c < columns.
using ColumnFold = void (*)(const void* x, void* y, int64_t rows,
                            int64_t columns, int64_t stride);
struct FoldLoops {
  RowFold row = nullptr;
  ColumnFold column = nullptr;
};

// The place of the first greatest (least) of x[0 .. n), NaNs passed over.
using RowArg = int64_t (*)(const void* x, int64_t n);

// Columns that a ColumnFold takes at most at once.
inline constexpr int64_t kFoldColumns = 128;

#define HR_REDUCE_TABLES(level)                \
  namespace level {                            \
  FoldLoops FindFold(Fold fold, int dtype);    \
  RowArg FindRowArg(bool greatest, int dtype); \
  }
HR_FOR_EACH_LEVEL(HR_REDUCE_TABLES)
#undef HR_REDUCE_TABLES

}  // namespace headrace
