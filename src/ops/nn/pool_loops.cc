#include "ops/nn/pool_loops.h"

namespace headrace::HR_LEVEL {
namespace {

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
  return (Mask)(b > a) | (Mask)(b != b) ? b : a;
}
HR_INLINE Vec Get(const float* p, bool whole) {
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

void MaxBack(const float* const* taps, float* const* to, int n,
             int64_t channels, const float* dy) {
  ForChannels(
      channels, [&](int64_t k, bool whole) __attribute__((always_inline)) {
        const Vec m = MaxAt(taps, n, k, whole);
        Vec left = Get(dy + k, whole);
        Mask open = (Mask)(m == m) | -1;
        for (int i = 0; i < n; ++i) {
          const Vec x = Get(taps[i] + k, whole);
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

const PoolLoops* Pool() {
  static constexpr PoolLoops loops = {Max, Sum, MaxBack, SumBack};
  return &loops;
}

}  // namespace headrace::HR_LEVEL
