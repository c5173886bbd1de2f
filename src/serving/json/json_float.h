// Numbers of JSON as floats and back, for the long lists that models are asked
// and answer with.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "serving/json/json_string.h"

namespace headrace::serving {

// Which a double has exactly.
inline constexpr int kMostPower = 22;
inline constexpr double kPowersOfTen[kMostPower + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// digits * 10^exponent, exponent within kMostPower, as the nearest float. False
// where two roundings, of the digits and of the product or quotient, may give
// another one, and for what is no normal float.
inline bool NearestFloat(uint64_t digits, int exponent, float* out) {
  double value = static_cast<double>(digits);
  value = exponent < 0 ? value / kPowersOfTen[-exponent]
                       : value * kPowersOfTen[exponent];
  if (digits != 0) {
    if (!(value >= 1.2e-38 && value <= 3.4e38)) return false;
    // Within four units of a double from the middle of two floats, where the 29
    // bits that a float has not are a one and zeros.
    const uint64_t rest = std::bit_cast<uint64_t>(value) & ((1u << 29) - 1);
    const uint64_t from_middle =
        rest > (1u << 28) ? rest - (1u << 28) : (1u << 28) - rest;
    if (from_middle <= 4) return false;
  }
  *out = static_cast<float>(value);
  return true;
}

// The digits at `p`, behind those of *number, and past them. Wraps around.
inline const char* ReadDigits(const char* p, const char* end,
                              uint64_t* number) {
  constexpr uint64_t kPowers[] = {1,      10,      100,      1000,     10000,
                                  100000, 1000000, 10000000, 100000000};
  constexpr uint64_t kEach = 0x0101010101010101;
  constexpr uint64_t kPairs = 0x000000FF000000FF;
  while (end - p >= 8) {
    uint64_t eight = LoadFixed64(p);
    const int count = DigitsOf(eight);
    // The digits to the top, zeros before them; then pairs, fours and eight of
    // them are put together. In two shifts, as one by 64 has no meaning.
    const int half = 32 - 4 * count;
    eight = (eight - kEach * '0') << half << half;
    eight = eight * 10 + (eight >> 8);
    eight = ((eight & kPairs) * (100 + (uint64_t{1000000} << 32)) +
             (eight >> 16 & kPairs) * (1 + (uint64_t{10000} << 32))) >>
            32;
    *number = *number * kPowers[count] + eight;
    p += count;
    if (count != 8) return p;
  }
  for (; p != end && *p >= '0' && *p <= '9'; ++p) {
    *number = *number * 10 + static_cast<uint64_t>(*p - '0');
  }
  return p;
}

// Zeros at `p`.
inline ptrdiff_t CountZeros(const char* p, const char* end) {
  const char* start = p;
  while (p != end && *p == '0') ++p;
  return p - start;
}

// Reads the number at `p` as std::from_chars does, with the nearest float. The
// end of the number, or null where from_chars has to look: more than 19 digits,
// an exponent far from 0, or a value so near to the middle of two floats that
// double does not decide.
inline const char* FastFloat(const char* p, const char* end, float* out) {
  const bool minus = p != end && *p == '-';
  p += minus;
  uint64_t digits = 0;
  const char* start = p;
  // Few, mostly, before the point.
  for (; p != end && *p >= '0' && *p <= '9'; ++p) {
    digits = digits * 10 + static_cast<uint64_t>(*p - '0');
  }
  ptrdiff_t count = p - start, exponent = 0;
  if (count == 0) return nullptr;
  if (p != end && *p == '.') {
    start = ++p;
    if (digits == 0) count = -CountZeros(p, end);  // zeros have no weight
    p = ReadDigits(p, end, &digits);
    if (p == start) return nullptr;
    exponent = start - p;
    count -= exponent;
  }
  if (count > 19) return nullptr;  // `digits` may have wrapped around
  if (p != end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool down = p != end && *p == '-';
    if (p != end && (*p == '-' || *p == '+')) ++p;
    start = p;
    int power = 0;
    for (; p != end && *p >= '0' && *p <= '9' && power < 1000; ++p) {
      power = power * 10 + (*p - '0');
    }
    if (p == start || (p != end && *p >= '0' && *p <= '9')) return nullptr;
    exponent += down ? -power : power;
  }
  if (exponent > kMostPower || exponent < -kMostPower) return nullptr;
  float nearest;
  if (!NearestFloat(digits, static_cast<int>(exponent), &nearest)) {
    return nullptr;
  }
  *out = std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) |
                              static_cast<uint32_t>(minus) << 31);
  return p;
}

// The eight digits of `number`, as characters less '0', the first the lowest
// byte.
inline uint64_t EightDigits(uint32_t number) {
  uint64_t x = number / 10000 | uint64_t{number % 10000} << 32;
  const uint64_t hundreds = (x * 10486 >> 20) & 0x0000007F0000007F;
  x = hundreds | (x - 100 * hundreds) << 16;
  const uint64_t tens = (x * 103 >> 10) & 0x000F000F000F000F;
  return tens | (x - 10 * tens) << 8;
}

// Significant digits of a float: six where they read back as the same value,
// else nine; as a number of nine digits whose first is of 10^*power. 0 where
// that is not simple to tell.
inline uint32_t DigitsOfFloat(float positive, int* power) {
  constexpr double kLimits[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0,
                                1e1,  1e2,  1e3,  1e4,  1e5};
  // Texts without an exponent, whatever the digits. (The float nearest to 1e-4
  // lies below it.)
  if (!(positive >= kLimits[0] && positive < 1e6f)) return 0;
  int at = 4 + (positive >= 1 ? 2 : -2);
  while (positive < kLimits[at]) --at;
  while (at < 9 && positive >= kLimits[at + 1]) ++at;
  *power = at - 4;
  // One rounding, and so within a part of a millionth of the exact product.
  const double scaled = positive * kPowersOfTen[8 - *power];
  const auto below = static_cast<uint32_t>(scaled);
  const double rest = scaled - below;
  if (std::abs(rest - 0.5) < 1e-6) return 0;
  const uint32_t nine = below + (rest > 0.5);
  const uint32_t last = nine % 1000;
  if (last == 500) return 0;
  const uint32_t six = nine / 1000 + (last > 500);
  if (six >= 1000000) return 0;
  // Half the distance of two floats is at most 60 in the ninth digit.
  if (last > 61 && last < 1000 - 61) return nine;
  float back;
  if (!NearestFloat(six, *power - 5, &back)) return 0;
  return back == positive ? six * 1000 : nine;
}

// Writes a float as AppendJsonNumber does, in at most kLongestFloat bytes, of
// which all may be touched. The end of the text, or null where it is not simple
// to tell.
inline constexpr int kLongestFloat = 32;
inline char* FastFloatText(float value, char* out) {
  const float positive = std::abs(value);
  *out = '-';
  out += std::signbit(value);
  if (positive == 0) {
    std::memcpy(out, "0.0", 3);
    return out + 3;
  }
  int power;
  const uint32_t digits = DigitsOfFloat(positive, &power);
  if (digits == 0) return nullptr;
  char text[16] = {};
  const uint64_t eight = EightDigits(digits % 100000000);
  text[0] = static_cast<char>('0' + digits / 100000000);
  StoreFixed64(text + 1, eight + 0x0101010101010101 * uint64_t{'0'});
  const int count = 9 - std::countl_zero(eight) / 8;  // without zeros behind
  if (power < 0) {
    std::memcpy(out, "0.000", 5);
    std::memcpy(out + 1 - power, text, sizeof text);
    return out + 1 - power + count;
  }
  std::memcpy(out, text, sizeof text);
  const int before = power + 1;  // the point
  out[before] = '.';
  std::memcpy(out + before + 1, text + before, 9);
  return out + before + 1 + std::max(1, count - before);
}

}  // namespace headrace::serving
