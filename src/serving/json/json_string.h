// Pieces of JSON strings, for who checks them and who reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/coding.h"

namespace headrace::serving {

// How many of eight characters, the first the lowest, are digits at its front.
inline int DigitsOf(uint64_t eight) {
  constexpr uint64_t kEach = 0x0101010101010101;
  // The top bit of each byte above '9', and of each below '0'. A carry reaches
  // only bytes behind the first of these, which alone counts.
  const uint64_t others =
      ((eight + kEach * 0x46) | (eight - kEach * '0')) & kEach * 0x80;
  return std::countr_zero(others) / 8;
}

// Past the digits that `p` stands at, eight at a time: long lists are mostly
// digits.
inline const char* PastDigits(const char* p, const char* end) {
  for (; end - p >= 8; p += 8) {
    const int count = DigitsOf(LoadFixed64(p));
    if (count != 8) return p + count;
  }
  while (p != end && *p >= '0' && *p <= '9') ++p;
  return p;
}

// The first quote, backslash or control character of [p, end), or its end.
inline const char* PlainRun(const char* p, const char* end) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const auto has_zero = [](uint64_t x) { return (x - kOnes) & ~x & kHighs; };
  for (; end - p >= 8; p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    const uint64_t stop = has_zero(word ^ (kOnes * '"')) |
                          has_zero(word ^ (kOnes * '\\')) |
                          ((word - kOnes * 0x20) & ~word & kHighs);
    if (stop != 0) break;
  }
  while (p != end && *p != '"' && *p != '\\' &&
         static_cast<unsigned char>(*p) >= 0x20) {
    ++p;
  }
  return p;
}

// The four hex digits at p; false where there are none.
inline bool HexNumber(const char* p, const char* end, int* code) {
  if (end - p < 4) return false;
  *code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = p[i];
    int digit;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return false;
    }
    *code = *code * 16 + digit;
  }
  return true;
}

}  // namespace headrace::serving
