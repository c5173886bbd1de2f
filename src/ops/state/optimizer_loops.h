// The vector loops behind optimizer_update.h, for each level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "ops/state/optimizer_update.h"

namespace headrace {

template <CpuLevel kLevel>
void RunUpdateFloat(UpdateRule rule, float* const* slots, const float* g,
                    const double* scalars, int64_t n);
template <CpuLevel kLevel>
void RunUpdateDouble(UpdateRule rule, double* const* slots, const double* g,
                     const double* scalars, int64_t n);

}  // namespace headrace
