// Colours: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/thread_pool.h"
#include "op/op.h"

namespace headrace {
namespace {

template <typename F>
struct Color {
  F a, b, c;
};

// Hue in [0, 1), saturation and value; 0 where a colour has no hue.
template <typename F>
Color<F> ToHsv(Color<F> rgb) {
  const F r = rgb.a, g = rgb.b, b = rgb.c;
  const F v = std::max(r, std::max(g, b));
  const F range = v - std::min(r, std::min(g, b));
  const F s = v > 0 ? range / v : F(0);
  if (!(range > 0)) return {F(0), s, v};
  const F norm = 1 / (6 * range);
  F h = r == v   ? norm * (g - b)
        : g == v ? norm * (b - r) + F(2) / 6
                 : norm * (r - g) + F(4) / 6;
  if (h < 0) h += 1;
  return {h, s, v};
}

template <typename F>
Color<F> ToRgb(Color<F> hsv) {
  const F dh = hsv.a * 6;
  auto part = [&](F x) {
    return (1 - hsv.b + hsv.b * std::clamp(x, F(0), F(1))) * hsv.c;
  };
  return {part(std::abs(dh - 3) - 1), part(2 - std::abs(dh - 2)),
          part(2 - std::abs(dh - 4))};
}

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls f for every pixel of input 0.
template <typename T, typename F>
void ForColors(KernelContext& c, F f) {
  const T* in = c.in<T>(0);
  T* out = c.out<T>(0);
  using W = Wide<T>;
  const int64_t pixels = c.input(0).num_elements() / 3;
  ParallelFor(pixels, 6.0, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * 3; i < end * 3; i += 3) {
      const Color<W> made =
          f(Color<W>{static_cast<W>(in[i]), static_cast<W>(in[i + 1]),
                     static_cast<W>(in[i + 2])});
      out[i] = static_cast<T>(made.a);
      out[i + 1] = static_cast<T>(made.b);
      out[i + 2] = static_cast<T>(made.c);
    }
  });
}

enum class Change { kToHsv, kToRgb, kHue, kSaturation };

template <typename T, Change kChange>
Status Run(KernelContext& c) {
  using W = Wide<T>;
  const W by = kChange == Change::kHue || kChange == Change::kSaturation
                   ? static_cast<W>(c.input(1).scalar<float>())
                   : W(0);
  ForColors<T>(c, [&](Color<W> x) {
    if constexpr (kChange == Change::kToHsv) {
      return ToHsv(x);
    } else if constexpr (kChange == Change::kToRgb) {
      return ToRgb(x);
    } else {
      Color<W> hsv = ToHsv(x);
      if (kChange == Change::kHue) {
        hsv.a += by;
        hsv.a -= std::floor(hsv.a);
      } else {
        hsv.b = std::clamp(hsv.b * by, W(0), W(1));
      }
      return ToRgb(hsv);
    }
  });
  return OkStatus();
}

template <Change kChange>
ComputeFn Pick(const ResolvedOp& op) {
  ComputeFn fn = nullptr;
  DispatchDType(op.type_attr("T"), FloatTypes{}, [&](auto tag) {
    fn = Run<typename decltype(tag)::type, kChange>;
  });
  return fn;
}

Status HsvShape(ShapeContext& c) {
  const Shape& s = c.input(0);
  if (s.known_rank()) {
    if (s.rank() < 1) return InvalidArgument("input must be at least 1D", s);
    if (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 3) {
      return FailedPrecondition(
          "input must have 3 channels but input only has ", s[s.rank() - 1],
          " channels.");
    }
  }
  c.set_output(0, s);
  return OkStatus();
}

template <bool kHue>
Status AdjustShape(ShapeContext& c) {
  const Shape& s = c.input(0);
  if (s.known_rank()) {
    if (s.rank() < 3) {
      return InvalidArgument("input must be at least 3-D, got shape", s);
    }
    if (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 3) {
      return InvalidArgument("input must have 3 channels but instead has ",
                             s[s.rank() - 1], " channels.");
    }
  }
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument(
        kHue ? "delta must be scalar: " : "scale must be scalar: ", c.input(1));
  }
  c.set_output(0, s);
  return OkStatus();
}

// One colour of [..., 3], its last dimension kept.
Value Channel(GradientContext& g, const Value& x, int i) {
  return g("GatherV2", {x, g.Int32s({i}), g.Int32(-1)});
}

// Hue is a quotient of differences: with R the largest, h = (g - b) / 6 range.
// Saturation is range / value. Colours without a range or a value get nothing
// through what they lack.
Status HsvGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const DType type = g.input(0).dtype();
  auto number = [&](double v) { return g.Scalar(type, v); };
  auto pick = [&](const Value& when, const Value& a, const Value& b) {
    return g("SelectV2", {when, a, b});
  };
  const Value& x = g.input(0);
  Value zero = number(0), one = number(1);
  Value c[3], last = g.Int32s({-1});
  for (int i = 0; i < 3; ++i) c[i] = Channel(g, x, i);
  Value v = g("Max", {x, last}, {{"keep_dims", true}});
  Value low = g("Min", {x, last}, {{"keep_dims", true}});
  Value range = g("Sub", {v, low});
  // Which colour is the largest and the smallest; the first of equal ones.
  Value top[3], bottom[3], seen_top, seen_bottom;
  for (int i = 0; i < 3; ++i) {
    top[i] = g("Equal", {c[i], v});
    bottom[i] = g("Equal", {c[i], low});
    if (i > 0) {
      top[i] = g("LogicalAnd", {top[i], g("LogicalNot", {seen_top})});
      bottom[i] = g("LogicalAnd", {bottom[i], g("LogicalNot", {seen_bottom})});
    }
    seen_top = i ? g("LogicalOr", {seen_top, top[i]}) : top[i];
    seen_bottom = i ? g("LogicalOr", {seen_bottom, bottom[i]}) : bottom[i];
  }
  Value dh = Channel(g, d, 0), ds = Channel(g, d, 1), dv = Channel(g, d, 2);
  Value has_range = g("Greater", {range, zero});
  Value has_value = g("Greater", {v, zero});
  Value per_range = g("DivNoNan", {one, range});
  // s = 1 - low / v.
  Value s_low = pick(has_value, g("Neg", {g("DivNoNan", {one, v})}), zero);
  Value s_top = pick(has_value, g("DivNoNan", {low, g("Mul", {v, v})}), zero);
  // h = (p - q) / (6 range) where the largest colour comes just before p.
  Value p = pick(top[0], c[1], pick(top[1], c[2], c[0]));
  Value q = pick(top[0], c[2], pick(top[1], c[0], c[1]));
  Value sixth = g("Mul", {number(1.0 / 6), per_range});
  Value slope = g("Mul", {g("Mul", {g("Sub", {p, q}), sixth}), per_range});
  Value d_range = pick(has_range, g("Neg", {g("Mul", {dh, slope})}), zero);
  Value d_difference = pick(has_range, g("Mul", {dh, sixth}), zero);
  Value d_top = g("AddV2", {g("AddV2", {dv, g("Mul", {ds, s_top})}), d_range});
  Value d_low = g("Sub", {g("Mul", {ds, s_low}), d_range});
  std::vector<Value> parts;
  for (int i = 0; i < 3; ++i) {
    const int before = (i + 2) % 3, after = (i + 1) % 3;
    Value sum =
        g("AddV2", {pick(top[i], d_top, zero), pick(bottom[i], d_low, zero)});
    Value up = pick(top[before], d_difference, zero);
    Value down = pick(top[after], d_difference, zero);
    parts.push_back(g("Sub", {g("AddV2", {sum, up}), down}));
  }
  parts.push_back(g.Int32(-1));
  g.set(0, g("ConcatV2", parts));
  return g.status();
}

#define HR_COLORS(Name)                                   \
  HR_OP(Name)                                             \
      .Input("images: T")                                 \
      .Output("output: T")                                \
      .Attr("T: {half, bfloat16, float, double} = float") \
      .Shape(HsvShape)
HR_COLORS(RGBToHSV)
    .Doc("Colours as hue, saturation and value.")
    .Gradient(HsvGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeFor<Pick<Change::kToHsv>>);
HR_COLORS(HSVToRGB)
    .Doc("Hue, saturation and value as red, green and blue.")
    .Cpu(ComputeFor<Pick<Change::kToRgb>>);
#undef HR_COLORS

HR_OP(AdjustHue)
    .Input("images: T")
    .Input("delta: float")
    .Output("output: T")
    .Attr("T: {half, float} = float")
    .Doc("Turns the hue of colours by a part of the circle.")
    .Shape(AdjustShape<true>)
    .Cpu(ComputeFor<Pick<Change::kHue>>);

HR_OP(AdjustSaturation)
    .Input("images: T")
    .Input("scale: float")
    .Output("output: T")
    .Attr("T: {half, float} = float")
    .Doc("Scales the saturation of colours.")
    .Shape(AdjustShape<false>)
    .Cpu(ComputeFor<Pick<Change::kSaturation>>);

}  // namespace
}  // namespace headrace
