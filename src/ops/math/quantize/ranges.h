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

// Steps from one end of `I` to the other, and one more.
template <typename I>
inline constexpr double kLevelSteps =
    static_cast<double>(std::numeric_limits<I>::max()) -
    static_cast<double>(std::numeric_limits<I>::lowest()) + 1;

// The levels of `I` spread evenly over [min, max], so that 0 is a level, in
// single precision: how upstream treats whole tensors.
template <typename I>
class EvenLevels {
 public:
  EvenLevels(float min, float max)
      : per_step_(max == min ? 0 : static_cast<float>(kWidth / (max - min))),
        first_(std::round(min * per_step_)),
        step_(static_cast<float>((max - min) / kWidth)) {
    // The lowest level's value is rounded to a whole number of steps, so that 0
    // is a level.
    const float foot = max == min ? min : std::round(min / step_) * step_;
    base_ = foot - kLowest * step_;
  }

  // What is not a number becomes the lowest level.
  I ToLevel(float x) const {
    const float v = std::round(x * per_step_) - (first_ - kLowest);
    // In float, as bounds of 32 bits are not exact: compared before the
    // conversion, which would be undefined beyond.
    if (std::isnan(v) || v <= kLowest) return std::numeric_limits<I>::lowest();
    return static_cast<I>(v >= kTop ? kTop : v);
  }
  float ToFloat(I level) const {
    return base_ + static_cast<float>(level) * step_;
  }

 private:
  static constexpr double kWidth = kLevelSteps<I> - 1;
  static constexpr float kLowest = std::numeric_limits<I>::lowest();
  // The last float that is a level.
  static constexpr float kTop =
      sizeof(I) == 4 ? 2147483520.0f
                     : static_cast<float>(std::numeric_limits<I>::max());

  float per_step_, first_, step_, base_;
};

// The same in double precision: how upstream treats single numbers.
template <typename I>
class PreciseLevels {
 public:
  PreciseLevels(float min, float max) : empty_(min == max), min_(min) {
    const double steps = kLevelSteps<I>;
    // The range is widened by a step: upstream counts levels, not the steps
    // between them.
    const double range = static_cast<double>(max - min) * (steps / (steps - 1));
    per_step_ = steps / range;
    step_ = range / steps;
    first_ = std::round(min * per_step_);
    const auto narrow = static_cast<float>(step_);
    // Through float, as upstream's: its rounding shows in the last digits.
    base_ = std::round(min / narrow) * narrow;
  }

  // The level, perhaps beyond those that `I` has, but within 2^52.
  int64_t Unclamped(float x) const {
    if (empty_) return static_cast<int64_t>(kLowest);
    // 2^52: whole numbers below are exact in a double and fit int64.
    constexpr double kFar = 4503599627370496.0;
    const double v = std::round(x * per_step_) - first_ + kLowest;
    if (std::isnan(v)) return static_cast<int64_t>(kLowest);
    return static_cast<int64_t>(v < -kFar ? -kFar : v > kFar ? kFar : v);
  }
  I ToLevel(float x) const {
    constexpr int64_t low = std::numeric_limits<I>::lowest();
    constexpr int64_t high = std::numeric_limits<I>::max();
    const int64_t v = Unclamped(x);
    return static_cast<I>(v < low ? low : v > high ? high : v);
  }
  float ToFloat(I level) const {
    if (empty_) return min_;
    // A level passes through float on its way, which rounds those of 32 bits.
    const double up = static_cast<double>(static_cast<float>(level)) - kLowest;
    return static_cast<float>(base_ + up * step_);
  }

 private:
  static constexpr double kLowest = std::numeric_limits<I>::lowest();

  bool empty_;
  float min_, base_;
  double per_step_, step_, first_;
};

}  // namespace headrace
