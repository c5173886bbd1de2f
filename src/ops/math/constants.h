// Numbers that mathematical functions use.
#pragma once

#include <limits>

namespace headrace {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace headrace
