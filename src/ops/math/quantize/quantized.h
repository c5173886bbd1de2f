// What ops that work on quantized tensors share: each comes with the range, two
// floats, that its levels are laid over.
#pragma once

#include <array>

#include "op/op.h"
#include "ops/math/quantize/ranges.h"

namespace headrace {

// Input 0's counterpart: the levels of a quantized tensor.
template <typename I>
const I* LevelsIn(const KernelContext& c, int i) {
  return static_cast<const I*>(c.input(i).raw());
}
template <typename I>
I* LevelsOut(const KernelContext& c, int i) {
  return static_cast<I*>(c.output(i).raw());
}

// InvalidArgument unless inputs [begin, end) are scalars.
Status CheckRangesAreScalars(ShapeContext& c, int begin, int end);
// Outputs 1 and 2 are scalars: the range of output 0.
void SetRangeOutputs(ShapeContext& c);
inline void SetRange(const KernelContext& c, float min, float max) {
  *c.out<float>(1) = min;
  *c.out<float>(2) = max;
}

// The level of input `i` that stands for 0, for the range in inputs `at` and
// `at` + 1; beyond the type's levels where 0 is outside the range.
template <typename I>
int32_t ZeroLevel(const KernelContext& c, int at) {
  const PreciseLevels<I> levels(*c.in<float>(at), *c.in<float>(at + 1));
  return static_cast<int32_t>(levels.Unclamped(0));
}

// Input `i` of levels of I as int32, less the level that stands for 0.
template <typename I>
StatusOr<Tensor> AboveZero(const KernelContext& c, int i, int32_t zero);

// Sets the range of output 0, a product of levels of A and B as int32, from
// their ranges in inputs `a` and `b`, and behind each.
template <typename A, typename B>
void SetProductRange(const KernelContext& c, int a, int b) {
  auto step = [&](int at, double steps) {
    return static_cast<float>((*c.in<float>(at + 1) - *c.in<float>(at)) /
                              static_cast<float>(steps - 1));
  };
  const float unit = step(a, kLevelSteps<A>) * step(b, kLevelSteps<B>);
  // Sums are int32 levels of one product's unit.
  SetRange(c, unit * -2147483648.0f, unit * 2147483648.0f);
}

// InvalidArgument unless the range in inputs `at` and `at` + 1 has a width.
Status CheckWidthOfRange(const KernelContext& c, int at, StringView name);

}  // namespace headrace
