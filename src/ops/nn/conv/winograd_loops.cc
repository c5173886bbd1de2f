#include "ops/nn/conv/winograd_loops.h"

namespace headrace::HR_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;  // channels come in multiples of it
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef float Unaligned
    __attribute__((vector_size(kLanes * sizeof(float)), aligned(4)));

[[gnu::always_inline]] inline Vec Get(const float* p) {
  return *reinterpret_cast<const Unaligned*>(p);
}
[[gnu::always_inline]] inline void Put(float* p, Vec v) {
  *reinterpret_cast<Unaligned*>(p) = v;
}

// The transforms' matrices hold 0, 1, -1 and one half alone: products with them
// are sums, exact but for rounding once each.

// G g G' with G = [1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1].
void Filter(const float* taps, int64_t tap, int64_t n, float* u, int64_t step) {
  for (int64_t c = 0; c < n; c += kLanes) {
    Vec rows[4][3];
    for (int j = 0; j < 3; ++j) {
      const Vec a = Get(taps + j * tap + c), b = Get(taps + (3 + j) * tap + c),
                d = Get(taps + (6 + j) * tap + c);
      rows[0][j] = a;
      rows[1][j] = (a + d + b) * 0.5f;
      rows[2][j] = (a + d - b) * 0.5f;
      rows[3][j] = d;
    }
    for (int i = 0; i < 4; ++i) {
      const Vec a = rows[i][0], b = rows[i][1], d = rows[i][2];
      float* to = u + i * 4 * step + c;
      Put(to, a);
      Put(to + step, (a + d + b) * 0.5f);
      Put(to + 2 * step, (a + d - b) * 0.5f);
      Put(to + 3 * step, d);
    }
  }
}

// B' d B with B' = [1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1].
void Input(const float* const* pixels, int64_t n, float* v, int64_t step) {
  for (int64_t c = 0; c < n; c += kLanes) {
    Vec rows[4][4];
    for (int j = 0; j < 4; ++j) {
      const Vec a = Get(pixels[j] + c), b = Get(pixels[4 + j] + c),
                d = Get(pixels[8 + j] + c), e = Get(pixels[12 + j] + c);
      rows[0][j] = a - d;
      rows[1][j] = b + d;
      rows[2][j] = d - b;
      rows[3][j] = b - e;
    }
    for (int i = 0; i < 4; ++i) {
      float* to = v + i * 4 * step + c;
      Put(to, rows[i][0] - rows[i][2]);
      Put(to + step, rows[i][1] + rows[i][2]);
      Put(to + 2 * step, rows[i][2] - rows[i][1]);
      Put(to + 3 * step, rows[i][1] - rows[i][3]);
    }
  }
}

// A' m A with A' = [1 1 1 0; 0 1 -1 -1].
void Output(const float* m, int64_t step, int64_t n, float* const* to) {
  for (int64_t c = 0; c < n; c += kLanes) {
    Vec rows[2][4];
    for (int j = 0; j < 4; ++j) {
      const Vec a = Get(m + j * step + c), b = Get(m + (4 + j) * step + c),
                d = Get(m + (8 + j) * step + c),
                e = Get(m + (12 + j) * step + c);
      rows[0][j] = a + b + d;
      rows[1][j] = b - d - e;
    }
    for (int i = 0; i < 2; ++i) {
      Put(to[2 * i] + c, rows[i][0] + rows[i][1] + rows[i][2]);
      Put(to[2 * i + 1] + c, rows[i][1] - rows[i][2] - rows[i][3]);
    }
  }
}

void Finish(const PixelStep* steps, int count, int64_t n, float* pixel) {
  for (int64_t c = 0; c < n; c += kLanes) {
    Vec x = Get(pixel + c);
    for (int s = 0; s < count; ++s) {
      switch (steps[s].kind) {
        case PixelStep::kTimes:
          x = x * Get(steps[s].with + c);
          break;
        case PixelStep::kPlus:
          x = x + Get(steps[s].with + c);
          break;
        case PixelStep::kRelu6:
          x = x < 6.0f ? x : Vec{} + 6.0f;
          [[fallthrough]];
        case PixelStep::kRelu:
          // (0 for NaN, as oneDNN's.)
          x = x > 0.0f ? x : Vec{};
          break;
      }
    }
    Put(pixel + c, x);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {

template <>
const WinogradLoops* WinogradOf<CpuLevel::HR_LEVEL>() {
  using namespace HR_LEVEL;
  static constexpr WinogradLoops loops = {Filter, Input, Output, Finish};
  return &loops;
}

}  // namespace headrace
