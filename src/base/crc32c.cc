#include "base/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace headrace {
namespace {

// The polynomial with its bits reversed: bit 31 stands for x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t TimesX(uint32_t a) {
  return (a >> 1) ^ ((a & 1) ? kPolynomial : 0);
}

// a * b modulo the polynomial.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = TimesX(b);
  }
  return product;
}

// x^(8 n): what n zero bytes behind do to a remainder.
constexpr uint32_t PowerOfBytes(uint64_t n) {
  uint32_t square = kOne;
  for (int i = 0; i < 8; ++i) square = TimesX(square);
  uint32_t power = kOne;
  for (; n != 0; n >>= 1) {
    if (n & 1) power = Multiply(power, square);
    square = Multiply(square, square);
  }
  return power;
}

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b]: the remainder of byte b with k zero bytes behind it.
constexpr Tables MakeTables() {
  Tables t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int i = 0; i < 8; ++i) crc = TimesX(crc);
    t[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k) {
    for (int b = 0; b < 256; ++b) {
      t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 0xff];
    }
  }
  return t;
}

constexpr Tables kTables = MakeTables();

uint64_t Load64(const unsigned char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

#ifdef __SSE4_2__

// A shift of a remainder over a fixed number of bytes, by four look-ups.
struct Shift {
  explicit Shift(uint64_t bytes) {
    const uint32_t power = PowerOfBytes(bytes);
    for (int k = 0; k < 4; ++k) {
      for (uint32_t b = 0; b < 256; ++b) {
        table[k][b] = Multiply(b << (8 * k), power);
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^
           table[2][(crc >> 16) & 0xff] ^ table[3][crc >> 24];
  }
  uint32_t table[4][256];
};

// Three streams hide the three cycles that the instruction takes.
template <size_t kStride>
uint32_t ThreeStreams(uint32_t crc, const unsigned char** p, size_t* n) {
  // Made at first use, in microseconds, for the two strides alone: 4 KiB of
  // tables each.
  static const Shift shift(kStride);
  while (*n >= 3 * kStride) {
    uint64_t a = crc, b = 0, c = 0;
    const unsigned char* const end = *p + kStride;
    for (const unsigned char* q = *p; q < end; q += 8) {
      a = _mm_crc32_u64(a, Load64(q));
      b = _mm_crc32_u64(b, Load64(q + kStride));
      c = _mm_crc32_u64(c, Load64(q + 2 * kStride));
    }
    crc = shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b);
    crc = shift(crc) ^ static_cast<uint32_t>(c);
    *p += 3 * kStride;
    *n -= 3 * kStride;
  }
  return crc;
}

#endif

}  // namespace

uint32_t Crc32cExtendPortable(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; n >= 8; n -= 8, p += 8) {
    const uint64_t v = Load64(p) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(v >> (8 * k)) & 0xff];
  }
  for (; n > 0; --n) crc = (crc >> 8) ^ kTables[0][(crc ^ *p++) & 0xff];
  return ~crc;
}

uint32_t Crc32cExtend(uint32_t crc, const void* data, size_t n) {
#ifdef __SSE4_2__
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  // Long strides first, as joining three streams costs some 30 instructions;
  // then short ones for the rest.
  if (n >= 3 * 4096) crc = ThreeStreams<4096>(crc, &p, &n);
  if (n >= 3 * 256) crc = ThreeStreams<256>(crc, &p, &n);
  uint64_t wide = crc;
  for (; n >= 8; n -= 8, p += 8) wide = _mm_crc32_u64(wide, Load64(p));
  crc = static_cast<uint32_t>(wide);
  for (; n > 0; --n) crc = _mm_crc32_u8(crc, *p++);
  return ~crc;
#else
  return Crc32cExtendPortable(crc, data, n);
#endif
}

uint32_t Crc32cCombine(uint32_t a, uint32_t b, uint64_t b_size) {
  return Multiply(a, PowerOfBytes(b_size)) ^ b;
}

}  // namespace headrace
