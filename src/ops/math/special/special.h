// What the special functions' ops have in common.
#pragma once

#include "op/spelled_out.h"
#include "ops/math/constants.h"
#include "ops/math/elementwise/elementwise.h"

namespace headrace {

// A function of doubles as one of any floating type.
template <double (*F)(double)>
constexpr auto kOf = [](auto x) { return static_cast<decltype(x)>(F(x)); };

// The gradient of a function with this slope.
inline Status Flow(GradientContext& g, const Value& slope) {
  g.set(0, Named(g, "mul", "Mul", {g.grad(), slope}));
  return g.status();
}

}  // namespace headrace
