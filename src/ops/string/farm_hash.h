// What FarmHash's functions are made of.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

namespace headrace::farm {

inline uint64_t Load64(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
inline uint32_t Load32(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// FarmHash's own: hashes are buckets in saved models, so no bit may differ.
inline constexpr uint64_t kK0 = 0xc3a5c85c97cb3127, kK1 = 0xb492b66fbe98f273,
                          kK2 = 0x9ae16a3b2f90404f;

inline uint64_t ShiftMix(uint64_t v) { return v ^ (v >> 47); }

inline uint64_t HashPair(uint64_t u, uint64_t v, uint64_t mul) {
  uint64_t a = ShiftMix((u ^ v) * mul);
  uint64_t b = ShiftMix((v ^ a) * mul);
  return b * mul;
}

inline uint64_t HashUpTo16(const char* s, size_t n) {
  if (n >= 8) {
    const uint64_t mul = kK2 + n * 2;
    // The last eight bytes overlap the first: no tail to go through.
    const uint64_t a = Load64(s) + kK2, b = Load64(s + n - 8);
    const uint64_t c = std::rotr(b, 37) * mul + a;
    const uint64_t d = (std::rotr(a, 25) + b) * mul;
    return HashPair(c, d, mul);
  }
  if (n >= 4) {
    const uint64_t mul = kK2 + n * 2;
    return HashPair(n + (uint64_t{Load32(s)} << 3), Load32(s + n - 4), mul);
  }
  if (n > 0) {
    const uint8_t a = s[0], b = s[n >> 1], c = s[n - 1];
    const uint32_t y = a + (uint32_t{b} << 8);
    const uint32_t z = static_cast<uint32_t>(n) + (uint32_t{c} << 2);
    return ShiftMix(y * kK2 ^ z * kK0) * kK2;
  }
  return kK2;
}

using Pair = std::pair<uint64_t, uint64_t>;

inline Pair WeakHash32(const char* s, uint64_t a, uint64_t b) {
  const uint64_t w = Load64(s), x = Load64(s + 8), y = Load64(s + 16),
                 z = Load64(s + 24);
  a += w;
  b = std::rotr(b + a + z, 21);
  const uint64_t c = a;
  a += x + y;
  b += std::rotr(a, 44);
  return {a + z, b + c};
}

}  // namespace headrace::farm
