// Sums of weighted pixels along one axis, one set of loops a level of the
// instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// The taps of a row of outputs, `most` places each (AxisTaps). `lerps`: two
// taps each, a and b, whose sum is a + (b - a) * weight of b.
struct TapRows {
  const int32_t* count;
  const int32_t* index;
  const float* weight;
  int64_t most;
  bool lerps;
};

// out[o, c] = sum over taps t of in[index(o, t), c] * weight(o, t).
template <CpuLevel kLevel>
void ResampleColumns(const TapRows& taps, int64_t outputs, int64_t inputs,
                     int64_t channels, const float* in, float* out);
// out[i] = sum over taps t of rows[t][i] * weight[t]; rows may repeat.
template <CpuLevel kLevel>
void MixRows(const float* const* rows, const float* weight, int64_t count,
             bool lerps, int64_t width, float* out);
// out[i] += row[i] * weight.
template <CpuLevel kLevel>
void AddRow(const float* row, float weight, int64_t width, float* out);

}  // namespace headrace
