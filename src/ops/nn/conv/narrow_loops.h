// The inner loop of convolutions of few input channels, one a level.
#pragma once

#include <cstdint>

#include "base/cpu_level.h"
#include "ops/nn/conv/winograd_loops.h"

namespace headrace {

// Some pixels of a line of the output, and a panel of its channels.
struct NarrowTile {
  const float* x;       // what the first pixel's window sees
  int64_t pixel, line;  // from pixel to pixel of the output, line to line of x
  int64_t lines, taps;  // of a window: numbers of a line are contiguous
  const float* filter;  // [lines * taps, width]
  float* y;
  int64_t y_pixel;
  int pixels;  // 1 to NarrowLoops::pixels
  // Behind the sums, one after the other; kPlus without numbers adds what y
  // holds.
  const PixelStep* steps;
  int count;
};

struct NarrowLoops {
  int pixels, width;  // of a tile at most, and always
  void (*tile)(const NarrowTile& t);
};

const NarrowLoops& LoopsForNarrow();

// What the file of a level gives away.
template <CpuLevel kLevel>
const NarrowLoops* NarrowOf();

}  // namespace headrace
