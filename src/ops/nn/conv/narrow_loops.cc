#include "ops/nn/conv/narrow_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::HR_LEVEL {
namespace {

// Sums of kPixels x 2 vectors stay in registers, as in the tiles of products.
#if defined(__AVX512F__)
constexpr int kLanes = 16, kPixels = 14;
#elif defined(__AVX__)
constexpr int kLanes = 8, kPixels = 6;
#else
constexpr int kLanes = 4, kPixels = 6;
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

// c + a * b.
[[gnu::always_inline]] inline Vec Fma(float a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, c);
#else
  return c + a * b;
#endif
}

// f(sum, pixel, half) for all sums of a tile, which stay in registers.
template <int P, typename F>
[[gnu::always_inline]] inline void ForSums(Vec (&sums)[P][2], F f) {
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
    f(sums[i][0], i, 0);
    f(sums[i][1], i, 1);
  }
}

template <int P>
[[gnu::always_inline]] inline void Step(const NarrowTile& t,
                                        const PixelStep& step,
                                        Vec (&sums)[P][2]) {
  switch (step.kind) {
    case PixelStep::kTimes: {
      const Vec row[2] = {Get(step.with), Get(step.with + kLanes)};
      return ForSums<P>(sums, [&](Vec& s, int, int h) { s = s * row[h]; });
    }
    case PixelStep::kPlus: {
      if (step.with == nullptr) {
        return ForSums<P>(sums, [&](Vec& s, int i, int h) {
          s = s + Get(t.y + i * t.y_pixel + h * kLanes);
        });
      }
      const Vec row[2] = {Get(step.with), Get(step.with + kLanes)};
      return ForSums<P>(sums, [&](Vec& s, int, int h) { s = s + row[h]; });
    }
    case PixelStep::kRelu6:
      ForSums<P>(sums,
                 [](Vec& s, int, int) { s = s < 6.0f ? s : Vec{} + 6.0f; });
      [[fallthrough]];
    case PixelStep::kRelu:
      // (0 for NaN, as oneDNN's.)
      return ForSums<P>(sums,
                        [](Vec& s, int, int) { s = s > 0.0f ? s : Vec{}; });
  }
}

template <int P>
void Tile(const NarrowTile& t) {
  Vec sums[P][2];
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) sums[i][0] = sums[i][1] = Vec{};
  const float* x = t.x;
  const float* filter = t.filter;
  const int64_t pixel = t.pixel;
  for (int64_t l = 0; l < t.lines; ++l, x += t.line) {
    for (int64_t p = 0; p < t.taps; ++p, filter += 2 * kLanes) {
      const Vec a = Get(filter), b = Get(filter + kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < P; ++i) {
        const float v = x[i * pixel + p];
        sums[i][0] = Fma(v, a, sums[i][0]);
        sums[i][1] = Fma(v, b, sums[i][1]);
      }
    }
  }
  for (int s = 0; s < t.count; ++s) Step<P>(t, t.steps[s], sums);
  ForSums<P>(sums, [&](Vec& s, int i, int h) {
    Put(t.y + i * t.y_pixel + h * kLanes, s);
  });
}

template <int... P>
struct TileTable {
  static constexpr void (*kTiles[])(const NarrowTile&) = {&Tile<P>...};
};
#if defined(__AVX512F__)
using Tiles = TileTable<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14>;
#else
using Tiles = TileTable<1, 2, 3, 4, 5, 6>;
#endif

void AnyTile(const NarrowTile& t) { Tiles::kTiles[t.pixels - 1](t); }

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {

template <>
const NarrowLoops* NarrowOf<CpuLevel::HR_LEVEL>() {
  using namespace HR_LEVEL;
  static constexpr NarrowLoops loops = {kPixels, 2 * kLanes, AnyTile};
  return &loops;
}

}  // namespace headrace
