// Colours changed one after another, one set of loops a level of the
// instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

enum class ColorChange { kToHsv, kToRgb, kHue, kSaturation };

// `n` colours of three numbers each; kHue and kSaturation change by `by`.
// out may be in.
template <CpuLevel kLevel>
void ChangeColors(ColorChange change, const float* in, int64_t n, float by,
                  float* out);
template <CpuLevel kLevel>
void ChangeColors(ColorChange change, const double* in, int64_t n, double by,
                  double* out);

}  // namespace headrace
