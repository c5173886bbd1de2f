// The inner loops of ArgMax and ArgMin, one set a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "tensor/dtype.h"

namespace headrace {

struct ArgLoops {
  // Where the extreme of x[0 .. n) is, n > 0; NaNs are passed over.
  int64_t (*run)(const void* x, int64_t n) = nullptr;
  // places[j]: the row of the extreme of x[i * inner + j]; `best` has room
  // for `inner` elements.
  void (*rows)(const void* x, int64_t n, int64_t inner, void* best,
               int64_t* places) = nullptr;
};

// Null functions where the type has no order.
ArgLoops LoopsForArg(DType dtype, bool max);

// What the files of a level give away.
template <CpuLevel kLevel>
ArgLoops Arg(DType dtype, bool max);

}  // namespace headrace
