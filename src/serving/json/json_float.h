// Numbers of JSON as floats, for the long lists that models are asked with.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace headrace::serving {

// Reads the number at `p` as std::from_chars does, with the nearest float. The
// end of the number, or null where from_chars has to look: more than 19 digits,
// an exponent far from 0, or a value so near to the middle of two floats that
// double does not decide.
inline const char* FastFloat(const char* p, const char* end, float* out) {
  const bool minus = p != end && *p == '-';
  if (minus) ++p;
  uint64_t digits = 0;
  int count = 0, behind_point = 0, exponent = 0;
  const auto read = [&] {
    const char* start = p;
    for (; p != end && *p >= '0' && *p <= '9'; ++p) {
      digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    }
    return static_cast<int>(p - start);
  };
  count = read();
  if (count == 0) return nullptr;
  if (p != end && *p == '.') {
    ++p;
    behind_point = read();
    if (behind_point == 0) return nullptr;
    count += behind_point;
  }
  if (count > 19) return nullptr;  // `digits` may have wrapped around
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool down = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    const char* start = p;
    for (; p != end && *p >= '0' && *p <= '9' && exponent < 1000; ++p) {
      exponent = exponent * 10 + (*p - '0');
    }
    if (p == start || (p != end && *p >= '0' && *p <= '9')) return nullptr;
    if (down) exponent = -exponent;
  }
  exponent -= behind_point;
  constexpr double
      kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};  // exact
  if (exponent > 22 || exponent < -22) return nullptr;
  // Two roundings: of the digits, and of the product or quotient.
  double value = static_cast<double>(digits);
  value = exponent < 0 ? value / kPowers[-exponent] : value * kPowers[exponent];
  if (digits != 0) {
    // A normal float, and not within four units of a double from the middle of
    // two, where the 29 bits that a float has not are a one and zeros.
    if (!(value >= 1.2e-38 && value <= 3.4e38)) return nullptr;
    const uint64_t rest = std::bit_cast<uint64_t>(value) & ((1u << 29) - 1);
    const uint64_t from_middle =
        rest > (1u << 28) ? rest - (1u << 28) : (1u << 28) - rest;
    if (from_middle <= 4) return nullptr;
  }
  const auto nearest = static_cast<float>(value);
  *out = minus ? -nearest : nearest;
  return p;
}

}  // namespace headrace::serving
