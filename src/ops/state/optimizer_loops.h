// The vector loops behind optimizer_update.h, for each level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "ops/state/optimizer_update.h"

namespace headrace {

#define HR_DECLARE(level)                                                      \
  namespace level {                                                            \
  void RunUpdateFloat(UpdateRule rule, float* const* slots, const float* g,    \
                      const double* scalars, int64_t n);                       \
  void RunUpdateDouble(UpdateRule rule, double* const* slots, const double* g, \
                       const double* scalars, int64_t n);                      \
  }
HR_FOR_EACH_LEVEL(HR_DECLARE)
#undef HR_DECLARE

}  // namespace headrace
