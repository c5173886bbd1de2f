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

template <typename F>
HR_INLINE F Largest(Color<F> x) {
  const F most = x.b < x.c ? x.c : x.b;
  return x.a < most ? most : x.a;
}
template <typename F>
HR_INLINE F Least(Color<F> x) {
  const F less = x.c < x.b ? x.c : x.b;
  return less < x.a ? less : x.a;
}

// The hue of a colour of that largest part and range, 0 where it has none; the
// circle has 6 / kSixths.
template <int kSixths, typename F>
HR_INLINE F Hue(Color<F> rgb, F v, F range) {
  const F r = rgb.a, g = rgb.b, b = rgb.c;
  // Infinite for grey, whose hue is set to 0 at the end: a select is cheaper
  // than a branch in a vector loop.
  const F norm = 1 / (kSixths * range);
  const F from = r == v ? g - b : g == v ? b - r : r - g;
  // Red begins at 0, green at a third, blue at two thirds of the circle.
  const F turn = r == v ? F(0) : g == v ? F(2) / kSixths : F(4) / kSixths;
  F h = norm * from + turn;
  // Reds that lean to blue come out negative.
  h = h < 0 ? h + F(6) / kSixths : h;
  return range > 0 ? h : F(0);
}

// Hue in [0, 1), saturation and value; 0 where a colour has no hue.
template <typename F>
HR_INLINE Color<F> ToHsv(Color<F> rgb) {
  const F v = Largest(rgb), range = v - Least(rgb);
  return {Hue<6>(rgb, v, range), v > 0 ? range / v : F(0), v};
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

// The colour of a hue, in sixths of the circle, whose parts are from `low` to
// `high`; these two come out to the bit.
template <typename F>
HR_INLINE F Between(F x, F low, F high, F range) {
  return x < 1 ? low + Clamp(x, F(0), F(1)) * range : high;
}
template <typename F>
HR_INLINE Color<F> OfRange(F hue, F low, F high, F range) {
  return {Between(Abs(hue - 3) - 1, low, high, range),
          Between(2 - Abs(hue - 2), low, high, range),
          Between(2 - Abs(hue - 4), low, high, range)};
}

template <typename F, ColorChange kChange>
HR_INLINE Color<F> Changed(Color<F> x, F by) {
  if (kChange == ColorChange::kToHsv) return ToHsv(x);
  if (kChange == ColorChange::kToRgb) return ToRgb(x);
  const F high = Largest(x), low = Least(x), range = high - low;
  const F hue = Hue<1>(x, high, range);
  if (kChange == ColorChange::kHue) {
    // The hue is a place on a circle.
    const F turned = hue + 6 * by;
    return OfRange(turned - 6 * Floor(turned / 6), low, high, range);
  }
  const F s = Clamp(high > 0 ? range / high * by : F(0), F(0), F(1));
  const F kept = s * high, least = high - kept;
  return OfRange(hue, least, least + kept, kept);
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
