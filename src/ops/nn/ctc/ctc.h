// What CTC's loss and decoders share: probabilities as logarithms.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

namespace headrace {

// Of what cannot happen.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b)).
inline double LogAdd(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + std::log1p(std::exp(b - a));
}

}  // namespace headrace
