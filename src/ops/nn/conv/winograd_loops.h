// The inner loops of Winograd's convolutions F(2x2, 3x3), one set a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// A step behind a convolution, for one pixel.
struct PixelStep {
  enum Kind : uint8_t { kTimes, kPlus, kRelu, kRelu6 } kind;
  const float* with = nullptr;  // kTimes, kPlus: one number a channel
};

// Channels are contiguous, in multiples of 16.
struct WinogradLoops {
  // The filter's 3x3 taps of one input channel and `n` output channels, `tap`
  // apart, as 4x4 numbers each, `step` apart.
  void (*filter)(const float* taps, int64_t tap, int64_t n, float* u,
                 int64_t step);
  // The 4x4 pixels of a tile, each of `n` channels, as 16 vectors, `step`
  // apart.
  void (*input)(const float* const* pixels, int64_t n, float* v, int64_t step);
  // Of 16 vectors of `n` channels, `step` apart, the tile's 2x2 pixels.
  void (*output)(const float* m, int64_t step, int64_t n, float* const* to);
  // The steps, one after the other, for `n` channels of a pixel, in place.
  void (*finish)(const PixelStep* steps, int count, int64_t n, float* pixel);
};

const WinogradLoops& LoopsForWinograd();

// What the file of a level gives away.
template <CpuLevel kLevel>
const WinogradLoops* WinogradOf();

}  // namespace headrace
