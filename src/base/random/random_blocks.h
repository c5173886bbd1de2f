// One block of random numbers: what random_fill.cc asks of the vector loops.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A block is this many groups of four words, groups that lie `stride` apart.
inline constexpr int kRandomGroups = 64;
inline constexpr int kRandomWords = 4 * kRandomGroups;

template <CpuLevel kLevel>
void RandomWords(const uint32_t counter[4], const uint32_t key[2],
                 uint32_t stride, uint32_t* words);
// kRandomWords numbers in [0, 1) or from the normal distribution.
template <CpuLevel kLevel>
void WordsToUniform(const uint32_t* words, float* out);
template <CpuLevel kLevel>
void WordsToNormal(const uint32_t* words, float* out);
// Two words make a double: kRandomWords / 2 of them.
template <CpuLevel kLevel>
void WordsToUniform(const uint32_t* words, double* out);
template <CpuLevel kLevel>
void WordsToNormal(const uint32_t* words, double* out);
// out[i] = low + words[i] % range.
template <CpuLevel kLevel>
void WordsToRange(const uint32_t* words, uint32_t low, uint32_t range,
                  uint32_t* out);

}  // namespace headrace
