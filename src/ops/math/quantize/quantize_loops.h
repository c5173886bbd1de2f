// Floats to levels, one set of loops a level of the instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A float goes on levels as round((x - base) * scale - half), x clamped to
// [low, high] (a NaN becomes `low`). What does not fit the type then becomes
// its lowest.
struct LevelScale {
  float low, high, base, scale, half;
  bool even;  // ties go to the even level, not away from zero
};

// FakeQuant: floor((x clamped to [min, max]) * inverse + 0.5) * scale.
struct FakeLevels {
  float min, max, inverse, scale;
};

template <CpuLevel kLevel>
void FakeQuantLoop(const FakeLevels& l, const float* x, float* y, int64_t n);
// For int8_t, uint8_t, int16_t, uint16_t and int32_t.
template <CpuLevel kLevel, typename I>
void LevelLoop(const LevelScale& s, const float* x, I* y, int64_t n);

}  // namespace headrace
