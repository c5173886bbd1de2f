#include "base/numbers/double_math.h"
#include "base/numbers/vector_math.h"
#include "base/random/random_blocks.h"

namespace headrace::HR_LEVEL {
namespace {

constexpr float kTwoPi = 6.28318530717958647692f;
// Upstream's floor of what a logarithm is taken of: a uniform 0 would give an
// infinite normal.
constexpr float kSmallest = 1.0e-7f;

HR_VECTOR float Uniform(uint32_t w) {
  // 23 random bits behind the exponent of 1: a number in [1, 2), less 1.
  // Multiplying an integer by 2^-32 could round up to 1.
  return FloatOf((w & 0x7fffff) | 0x3f800000) - 1.0f;
}
HR_VECTOR double Uniform(uint32_t w0, uint32_t w1) {
  const uint64_t bits = (uint64_t{w0 & 0xfffff} << 32) | w1;
  return __builtin_bit_cast(double, bits | 0x3ff0000000000000) - 1.0;
}

// The ten rounds for one counter; its words go to w[0 .. 3].
HR_VECTOR void Rounds(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                      uint32_t k0, uint32_t k1, uint32_t* w) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    // Multipliers and key increments of Philox4x32-10 (Salmon et al., 2011).
    const uint64_t a = uint64_t{0xD2511F53} * c0;
    const uint64_t b = uint64_t{0xCD9E8D57} * c2;
    const uint32_t n0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(b);
    c3 = static_cast<uint32_t>(a);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  w[0] = c0;
  w[1] = c1;
  w[2] = c2;
  w[3] = c3;
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
void RandomWords<CpuLevel::HR_LEVEL>(const uint32_t counter[4],
                                     const uint32_t key[2], uint32_t stride,
                                     uint32_t* words) {
  const uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2],
                 c3 = counter[3], k0 = key[0], k1 = key[1];
  const uint32_t last = (kRandomGroups - 1) * stride;
  if (c0 + last >= c0) {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kRandomGroups; ++i) {
      Rounds(c0 + i * stride, c1, c2, c3, k0, k1, words + 4 * i);
    }
    return;
  }
  // The lowest word of the counter overflows within the block.
  for (uint32_t i = 0; i < kRandomGroups; ++i) {
    const uint64_t low = (uint64_t{c1} << 32 | c0);
    const uint64_t sum = low + i * stride;
    const uint64_t high = (uint64_t{c3} << 32 | c2) + (sum < low);
    Rounds(static_cast<uint32_t>(sum), static_cast<uint32_t>(sum >> 32),
           static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32), k0,
           k1, words + 4 * i);
  }
}

template <>
void WordsToUniform<CpuLevel::HR_LEVEL>(const uint32_t* words, float* out) {
#pragma GCC ivdep
  for (int i = 0; i < kRandomWords; ++i) out[i] = Uniform(words[i]);
}

template <>
void WordsToUniform<CpuLevel::HR_LEVEL>(const uint32_t* words, double* out) {
#pragma GCC ivdep
  for (int i = 0; i < kRandomWords / 2; ++i) {
    out[i] = Uniform(words[2 * i], words[2 * i + 1]);
  }
}

template <>
void WordsToNormal<CpuLevel::HR_LEVEL>(const uint32_t* words, float* out) {
#pragma GCC ivdep
  for (int i = 0; i < kRandomWords / 2; ++i) {
    float u = Uniform(words[2 * i]);
    u = u < kSmallest ? kSmallest : u;
    const float angle = kTwoPi * Uniform(words[2 * i + 1]);
    const float radius = __builtin_sqrtf(-2.0f * Log(u));
    out[2 * i] = SinReduced(angle) * radius;
    out[2 * i + 1] = CosReduced(angle) * radius;
  }
}

template <>
void WordsToNormal<CpuLevel::HR_LEVEL>(const uint32_t* words, double* out) {
  constexpr int kPairs = kRandomWords / 4;
  double sines[kPairs], cosines[kPairs], radii[kPairs];
#pragma GCC ivdep
  for (int i = 0; i < kPairs; ++i) {
    const double u = Uniform(words[4 * i], words[4 * i + 1]);
    radii[i] = log(u < 1.0e-7 ? 1.0e-7 : u);
    sines[i] = 2 * M_PI * Uniform(words[4 * i + 2], words[4 * i + 3]);
  }
#pragma GCC ivdep
  for (int i = 0; i < kPairs; ++i) cosines[i] = cos(sines[i]);
#pragma GCC ivdep
  for (int i = 0; i < kPairs; ++i) sines[i] = sin(sines[i]);
#pragma GCC ivdep
  for (int i = 0; i < kPairs; ++i) {
    const double radius = __builtin_sqrt(-2.0 * radii[i]);
    out[2 * i] = sines[i] * radius;
    out[2 * i + 1] = cosines[i] * radius;
  }
}

template <>
void WordsToRange<CpuLevel::HR_LEVEL>(const uint32_t* words, uint32_t low,
                                      uint32_t range, uint32_t* out) {
  // A quotient in double is exact enough to be off by at most one.
  const double inverse = 1.0 / range;
#pragma GCC ivdep
  for (int i = 0; i < kRandomWords; ++i) {
    const uint32_t w = words[i];
    const uint32_t q = static_cast<uint32_t>(
        static_cast<int64_t>(static_cast<double>(w) * inverse));
    uint32_t r = w - q * range;
    r = r > w ? r + range : r;  // q was one too large
    out[i] = low + (r >= range ? r - range : r);
  }
}

}  // namespace headrace
