#include "ops/math/quantize/quantize_loops.h"

#include "base/numbers/vector_math.h"

namespace headrace::HR_LEVEL {
namespace {

HR_VECTOR float Clamp(float x, float low, float high) {
  const float raised = x > low ? x : low;
  return raised < high ? raised : high;
}

// The nearest integer, ties away from zero: to the even one, and one further
// where that went half a step the other way.
HR_VECTOR float RoundAway(float v) {
  const float near = __builtin_nearbyintf(v);
  const float one = CopySign(1.0f, v);
  return near - v == -0.5f * one ? near + one : near;
}

// The floats that bound what converts to I: the first one too large is a power
// of two.
template <typename I>
constexpr bool kSigned = I(-1) < I(0);
template <typename I>
constexpr float kTooLarge =
    static_cast<float>(uint64_t{1} << (8 * sizeof(I) - (kSigned<I> ? 1 : 0)));
template <typename I>
constexpr float kLowest = kSigned<I> ? -kTooLarge<I> : 0.0f;

template <typename I, bool kEven>
HR_VECTOR void Run(const LevelScale& s, const float* x, I* y, int64_t n) {
  // Copied out of the struct, which the compiler could not prove unchanged.
  const float low = s.low, high = s.high, base = s.base, scale = s.scale,
              half = s.half;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = (Clamp(x[i], low, high) - base) * scale - half;
    float r = kEven ? __builtin_nearbyintf(v) : RoundAway(v);
    // A conversion of what does not fit is undefined in C; x86's gives the
    // lowest.
    r = r >= kLowest<I> && r < kTooLarge<I> ? r : kLowest<I>;
    // By int32: vector conversions to bytes go that way.
    y[i] = static_cast<I>(static_cast<int32_t>(r));
  }
}

template <typename I>
void Choose(const LevelScale& s, const float* x, I* y, int64_t n) {
  if (s.even) {
    Run<I, true>(s, x, y, n);
  } else {
    Run<I, false>(s, x, y, n);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
void FakeQuantLoop<CpuLevel::HR_LEVEL>(const FakeLevels& l, const float* x,
                                       float* y, int64_t n) {
  const float min = l.min, max = l.max, inverse = l.inverse, scale = l.scale;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = Clamp(x[i], min, max);
    y[i] = __builtin_floorf(v * inverse + 0.5f) * scale;
  }
}

template <>
void LevelLoop<CpuLevel::HR_LEVEL, int8_t>(const LevelScale& s, const float* x,
                                           int8_t* y, int64_t n) {
  Choose(s, x, y, n);
}
template <>
void LevelLoop<CpuLevel::HR_LEVEL, uint8_t>(const LevelScale& s, const float* x,
                                            uint8_t* y, int64_t n) {
  Choose(s, x, y, n);
}
template <>
void LevelLoop<CpuLevel::HR_LEVEL, int16_t>(const LevelScale& s, const float* x,
                                            int16_t* y, int64_t n) {
  Choose(s, x, y, n);
}
template <>
void LevelLoop<CpuLevel::HR_LEVEL, uint16_t>(const LevelScale& s,
                                             const float* x, uint16_t* y,
                                             int64_t n) {
  Choose(s, x, y, n);
}
template <>
void LevelLoop<CpuLevel::HR_LEVEL, int32_t>(const LevelScale& s, const float* x,
                                            int32_t* y, int64_t n) {
  Choose(s, x, y, n);
}

}  // namespace headrace
