#include "ops/nn/pool/pool_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLanes = kBytes / sizeof(float);
typedef float Vec __attribute__((vector_size(kBytes)));
typedef int Mask __attribute__((vector_size(kBytes)));
typedef float Anywhere __attribute__((vector_size(kBytes), aligned(4)));

HR_INLINE Vec Load(const float* p) {
  return *reinterpret_cast<const Anywhere*>(p);
}
HR_INLINE void Store(float* p, Vec v) { *reinterpret_cast<Anywhere*>(p) = v; }

// Calls f(channel, whole) so that every channel is met once: whole vectors,
// then one channel at a time.
template <typename F>
HR_INLINE void ForChannels(int64_t channels, F f) {
  int64_t k = 0;
  for (; k + kLanes <= channels; k += kLanes) f(k, true);
  for (; k < channels; ++k) f(k, false);
}

HR_INLINE Vec Larger(Vec a, Vec b) {
  // A NaN wins, and the latest of several.
  return (Mask)(b > a) | (Mask)(b != b) ? b : a;
}
HR_INLINE Vec Get(const float* p, bool whole) {
  // The same code for one channel: seven eighths of the vector or more are
  // thrown away.
  return whole ? Load(p) : Vec{} + p[0];
}
HR_INLINE void Put(float* p, Vec v, bool whole) {
  if (whole) {
    Store(p, v);
  } else {
    p[0] = v[0];
  }
}

HR_INLINE Vec MaxAt(const float* const* taps, int n, int64_t k, bool whole) {
  Vec m = Get(taps[0] + k, whole);
  for (int i = 1; i < n; ++i) m = Larger(m, Get(taps[i] + k, whole));
  return m;
}

void Max(const float* const* taps, int n, int64_t channels, float* y) {
  ForChannels(
      channels, [&](int64_t k, bool whole) __attribute__((always_inline)) {
        Put(y + k, MaxAt(taps, n, k, whole), whole);
      });
}

void Sum(const float* const* taps, int n, int64_t channels, float scale,
         float* y) {
  ForChannels(
      channels, [&](int64_t k, bool whole) __attribute__((always_inline)) {
        Vec s = Get(taps[0] + k, whole);
        for (int i = 1; i < n; ++i) s += Get(taps[i] + k, whole);
        Put(y + k, s * scale, whole);
      });
}

// What rows of few channels are pooled with.
struct Largest {
  static constexpr float kEmpty = -__builtin_inff();
  HR_INLINE float Join(float a, float b) { return b > a || b != b ? b : a; }
  HR_INLINE float Finish(float v, float) { return v; }
};
struct Mean {
  static constexpr float kEmpty = 0;
  HR_INLINE float Join(float a, float b) { return a + b; }
  HR_INLINE float Finish(float v, float scale) { return v * scale; }
};

// The outputs [begin, end) one by one, where windows may lie over the ends.
template <typename F>
HR_INLINE void NarrowPixels(const NarrowRow& r, int n, const float* room,
                            int64_t begin, int64_t end, float* y) {
  for (int64_t o = begin; o < end; ++o) {
    const int64_t at = o * r.stride - r.before;
    const int64_t first = at > 0 ? at : 0;
    const int64_t last = at + r.size < r.in ? at + r.size : r.in;
    for (int64_t k = 0; k < r.channels; ++k) {
      float v = F::kEmpty;
      if (first < last) {
        v = room[first * r.channels + k];
        for (int64_t p = first + 1; p < last; ++p) {
          v = F::Join(v, room[p * r.channels + k]);
        }
        v = F::Finish(v, 1.0f / static_cast<float>((last - first) * n));
      }
      y[o * r.channels + k] = v;
    }
  }
}

template <typename F>
HR_INLINE void PoolRow(const float* const* rows, int n, const NarrowRow& r,
                       float* __restrict room, float* __restrict y) {
  if (n == 0) {
    // All rows are padding.
    for (int64_t i = 0; i < r.out * r.channels; ++i) y[i] = F::kEmpty;
    return;
  }
  const int64_t wide = r.in * r.channels;
  // First down the rows, whole rows at a time; then along them.
  for (int64_t i = 0; i < wide; ++i) room[i] = rows[0][i];
  for (int j = 1; j < n; ++j) {
    const float* row = rows[j];
    for (int64_t i = 0; i < wide; ++i) room[i] = F::Join(room[i], row[i]);
  }
  // Where windows move by a pixel and lie inside, neighbours are one run.
  int64_t begin = r.before < r.out ? r.before : r.out;
  int64_t end = r.in - r.size + r.before + 1;
  end = end < r.out ? end : r.out;
  if (r.stride != 1 || begin >= end) begin = end = 0;
  NarrowPixels<F>(r, n, room, 0, begin, y);
  // Inside all windows see as many pixels.
  const float scale = 1.0f / static_cast<float>(r.size * n);
  const float* from = room + (begin - r.before) * r.channels;
  float* to = y + begin * r.channels;
  const int64_t run = (end - begin) * r.channels;
  for (int64_t i = 0; i < run; ++i) to[i] = from[i];
  for (int64_t p = 1; p < r.size; ++p) {
    const float* shifted = from + p * r.channels;
    for (int64_t i = 0; i < run; ++i) to[i] = F::Join(to[i], shifted[i]);
  }
  for (int64_t i = 0; i < run; ++i) to[i] = F::Finish(to[i], scale);
  NarrowPixels<F>(r, n, room, end, r.out, y);
}
void MaxRow(const float* const* rows, int n, const NarrowRow& r, float* room,
            float* y) {
  PoolRow<Largest>(rows, n, r, room, y);
}
void MeanRow(const float* const* rows, int n, const NarrowRow& r, float* room,
             float* y) {
  PoolRow<Mean>(rows, n, r, room, y);
}

void MaxBack(const float* const* taps, float* const* to, int n,
             int64_t channels, const float* dy) {
  ForChannels(
      channels, [&](int64_t k, bool whole) __attribute__((always_inline)) {
        const Vec m = MaxAt(taps, n, k, whole);
        Vec left = Get(dy + k, whole);
        // All lanes are open at first: who takes the gradient closes its lane.
        Mask open = (Mask)(m == m) | -1;
        for (int i = 0; i < n; ++i) {
          const Vec x = Get(taps[i] + k, whole);
          // The maximum is NaN exactly where an element is; the first such
          // takes the gradient.
          const Mask here = ((Mask)(x == m) | (Mask)(x != x)) & open;
          Put(to[i] + k, Get(to[i] + k, whole) + (here ? left : Vec{}), whole);
          open &= ~here;
        }
      });
}

void SumBack(float* const* to, int n, int64_t channels, float scale,
             const float* dy) {
  ForChannels(
      channels, [&](int64_t k, bool whole) __attribute__((always_inline)) {
        const Vec d = Get(dy + k, whole) * scale;
        for (int i = 0; i < n; ++i) {
          Put(to[i] + k, Get(to[i] + k, whole) + d, whole);
        }
      });
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const PoolLoops* Pool<CpuLevel::HR_LEVEL>() {
  static constexpr PoolLoops loops = {Max,     Sum,     MaxRow,
                                      MeanRow, MaxBack, SumBack};
  return &loops;
}

}  // namespace headrace
