#include "ops/image/color_loops.h"

namespace headrace::HR_LEVEL {
namespace {

// Forced inline, for each level of the instruction set its own copy.
#define HR_INLINE [[gnu::always_inline]] static inline

// Colours whose parts are worked on together, each part in a row of its own.
constexpr int kTogether = 128;

template <typename F>
HR_INLINE F Clamp(F x, F low, F high) {
  return x < low ? low : high < x ? high : x;
}
HR_INLINE float Abs(float x) { return __builtin_fabsf(x); }
HR_INLINE double Abs(double x) { return __builtin_fabs(x); }
HR_INLINE float Floor(float x) { return __builtin_floorf(x); }
HR_INLINE double Floor(double x) { return __builtin_floor(x); }

template <typename F>
struct Color {
  F a, b, c;
};

// Hue in [0, 1), saturation and value; 0 where a colour has no hue.
template <typename F>
HR_INLINE Color<F> ToHsv(Color<F> rgb) {
  const F r = rgb.a, g = rgb.b, b = rgb.c;
  const F most = g < b ? b : g, v = r < most ? most : r;
  const F less = b < g ? b : g, low = less < r ? less : r;
  const F range = v - low;
  const F s = v > 0 ? range / v : F(0);
  // Infinite for grey, whose hue is set to 0 at the end: a select is cheaper
  // than a branch in a vector loop.
  const F norm = 1 / (6 * range);
  const F from = r == v ? g - b : g == v ? b - r : r - g;
  // Red begins at 0, green at a third, blue at two thirds of the circle.
  const F turn = r == v ? F(0) : g == v ? F(2) / 6 : F(4) / 6;
  F h = norm * from + turn;
  // Reds that lean to blue come out negative.
  h = h < 0 ? h + 1 : h;
  return {range > 0 ? h : F(0), s, v};
}

template <typename F>
HR_INLINE F Part(F x, F s, F v) {
  return (1 - s + s * Clamp(x, F(0), F(1))) * v;
}

template <typename F>
HR_INLINE Color<F> ToRgb(Color<F> hsv) {
  const F dh = hsv.a * 6, s = hsv.b, v = hsv.c;
  // Each colour is a trapezoid over the circle, cut to [0, 1] in Part: no
  // branch on the sector of the hue.
  return {Part(Abs(dh - 3) - 1, s, v), Part(2 - Abs(dh - 2), s, v),
          Part(2 - Abs(dh - 4), s, v)};
}

template <typename F, ColorChange kChange>
HR_INLINE Color<F> Changed(Color<F> x, F by) {
  if (kChange == ColorChange::kToHsv) return ToHsv(x);
  if (kChange == ColorChange::kToRgb) return ToRgb(x);
  Color<F> hsv = ToHsv(x);
  if (kChange == ColorChange::kHue) {
    // The hue is a place on a circle.
    const F turned = hsv.a + by;
    hsv.a = turned - Floor(turned);
  } else {
    hsv.b = Clamp(hsv.b * by, F(0), F(1));
  }
  return ToRgb(hsv);
}

template <typename F, ColorChange kChange>
void Change(const F* in, int64_t n, F by, F* out) {
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    const int64_t left = n - begin;
    const int count = static_cast<int>(left < kTogether ? left : kTogether);
    // Set to zero, as the loop below runs over all of them, so that its length
    // is known to the compiler.
    F a[kTogether] = {}, b[kTogether] = {}, c[kTogether] = {};
    const F* const from = in + 3 * begin;
    for (int i = 0; i < count; ++i) {
      a[i] = from[3 * i];
      b[i] = from[3 * i + 1];
      c[i] = from[3 * i + 2];
    }
    for (int i = 0; i < kTogether; ++i) {
      const Color<F> made = Changed<F, kChange>({a[i], b[i], c[i]}, by);
      a[i] = made.a;
      b[i] = made.b;
      c[i] = made.c;
    }
    F* const to = out + 3 * begin;
    for (int i = 0; i < count; ++i) {
      to[3 * i] = a[i];
      to[3 * i + 1] = b[i];
      to[3 * i + 2] = c[i];
    }
  }
}

template <typename F>
void Choose(ColorChange change, const F* in, int64_t n, F by, F* out) {
  switch (change) {
    case ColorChange::kToHsv:
      return Change<F, ColorChange::kToHsv>(in, n, by, out);
    case ColorChange::kToRgb:
      return Change<F, ColorChange::kToRgb>(in, n, by, out);
    case ColorChange::kHue:
      return Change<F, ColorChange::kHue>(in, n, by, out);
    case ColorChange::kSaturation:
      return Change<F, ColorChange::kSaturation>(in, n, by, out);
  }
}

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
void ChangeColors<CpuLevel::HR_LEVEL>(ColorChange change, const float* in,
                                      int64_t n, float by, float* out) {
  Choose(change, in, n, by, out);
}
template <>
void ChangeColors<CpuLevel::HR_LEVEL>(ColorChange change, const double* in,
                                      int64_t n, double by, double* out) {
  Choose(change, in, n, by, out);
}

}  // namespace headrace
