// One block of random numbers: what random_fill.cc asks of the vector loops.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A block is this many groups of four words, groups that lie `stride` apart.
inline constexpr int kRandomGroups = 64;
inline constexpr int kRandomWords = 4 * kRandomGroups;

#define HR_RANDOM_BLOCKS(level)                                          \
  namespace level {                                                      \
  void RandomWords(const uint32_t counter[4], const uint32_t key[2],     \
                   uint32_t stride, uint32_t* words);                    \
  /* kRandomWords numbers in [0, 1) or from the normal distribution. */  \
  void WordsToUniform(const uint32_t* words, float* out);                \
  void WordsToNormal(const uint32_t* words, float* out);                 \
  /* Two words make a double: kRandomWords / 2 of them. */               \
  void WordsToUniform(const uint32_t* words, double* out);               \
  void WordsToNormal(const uint32_t* words, double* out);                \
  /* out[i] = low + words[i] % range. */                                 \
  void WordsToRange(const uint32_t* words, uint32_t low, uint32_t range, \
                    uint32_t* out);                                      \
  }
HR_FOR_EACH_LEVEL(HR_RANDOM_BLOCKS)
#undef HR_RANDOM_BLOCKS

}  // namespace headrace
