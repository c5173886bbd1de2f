// Kernels of reductions as the fusing pass sees them: a chain of element-wise
// calls may go on behind them while the row is in the cache.
#pragma once

#include "op/kernel.h"

namespace headrace {

// Thread-safe. Reduces input 0 over the axes that input 1 names.
class RowReducer : public Kernel {
 public:
  // y[0] = the reduction of the `n` > 0 elements at x, in output 0's type: the
  // bits that Run finds for each of 16 or more rows.
  virtual void ReduceRow(const void* x, int64_t n, void* y) const = 0;
};

}  // namespace headrace
