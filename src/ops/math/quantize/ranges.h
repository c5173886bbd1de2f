// How numbers are put on the levels of an integer type, and back.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/dtype.h"

namespace headrace {

// The integer type that a quantized type is stored as.
template <typename Q>
using LevelOf = decltype(Q::value);
using QuantizedTypes = TypeList<qint8, quint8, qint16, quint16, qint32>;

// The levels of `I` spread evenly over [min, max], so that 0 is a level.
template <typename I>
struct EvenLevels {
  static constexpr double kSteps =
      static_cast<double>(std::numeric_limits<I>::max()) -
      static_cast<double>(std::numeric_limits<I>::lowest()) + 1;
  static constexpr double kLowest = std::numeric_limits<I>::lowest();

  EvenLevels(float min, float max)
      : step((static_cast<double>(max) - min) / (kSteps - 1)),
        per_step(static_cast<float>(step > 0 ? 1 / step : 0)),
        first(step > 0 ? std::round(min / step) : 0) {}

  I ToLevel(float x) const {
    // In float, as upstream does: large levels of int32 are rounded.
    const float base = static_cast<float>(
        static_cast<double>(static_cast<float>(first)) - kLowest);
    const float v = std::round(x * per_step) - base;
    const float top = static_cast<float>(std::numeric_limits<I>::max());
    if (std::isnan(v) || v <= static_cast<float>(kLowest)) {
      return std::numeric_limits<I>::lowest();
    }
    if (sizeof(I) == 4 && v >= top) return static_cast<I>(2147483520);
    return v >= top ? std::numeric_limits<I>::max() : static_cast<I>(v);
  }
  float ToFloat(I level) const {
    return static_cast<float>((first + (level - kLowest)) * step);
  }

  double step;
  float per_step;
  double first;  // min in steps, rounded
};

}  // namespace headrace
