// Colours: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation.
#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/image/color_loops.h"

namespace headrace {
namespace {

// Changes every colour of input 0; half and bfloat16 by way of float.
template <typename T, ColorChange kChange>
Status Run(KernelContext& c) {
  using W = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr bool kBy =
      kChange == ColorChange::kHue || kChange == ColorChange::kSaturation;
  const W by = kBy ? static_cast<W>(c.input(1).scalar<float>()) : W(0);
  const T* in = c.in<T>(0);
  T* out = c.out<T>(0);
  const CpuLevel level = ActiveCpuLevel();
  ParallelFor(
      c.input(0).num_elements() / 3, 3.0, [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, W>) {
          AtLevel(level, [&](auto level) {
            return ChangeColors<level>(kChange, in + 3 * begin, end - begin, by,
                                       out + 3 * begin);
          });
        } else {
          // As many as fit the first cache beside their results.
          constexpr int64_t kColors = 256;
          W room[3 * kColors];
          for (int64_t i = begin; i < end; i += kColors) {
            const int64_t count = std::min(kColors, end - i);
            for (int64_t k = 0; k < 3 * count; ++k) {
              room[k] = static_cast<W>(in[3 * i + k]);
            }
            AtLevel(level, [&](auto level) {
              return ChangeColors<level>(kChange, room, count, by, room);
            });
            for (int64_t k = 0; k < 3 * count; ++k) {
              out[3 * i + k] = static_cast<T>(room[k]);
            }
          }
        }
      });
  return OkStatus();
}

template <ColorChange kChange>
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
    if (s.rank() < 1) {
      return c.Refuse(RankIsLess(1, 0),
                      InvalidArgument("input must be at least 1D", s));
    }
    if (s[s.rank() - 1] >= 0 && s[s.rank() - 1] != 3) {
      return c.Refuse(
          DimensionIsNot(3, s[s.rank() - 1]),
          FailedPrecondition("input must have 3 channels but input only has ",
                             s[s.rank() - 1], " channels."));
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
// through what they lack; nor does the hue of those whose value is not
// positive, nor the saturation through a smallest colour that is not.
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
  // Which colour is the largest, the first of equal ones, and the smallest, the
  // last of them.
  Value top[3], bottom[3];
  auto choose = [&](const Value& extreme, bool last, Value* chosen) {
    Value seen;
    for (int k = 0; k < 3; ++k) {
      const int i = last ? 2 - k : k;
      chosen[i] = g("Equal", {c[i], extreme});
      if (k == 0) {
        seen = chosen[i];
        continue;
      }
      Value others = g("LogicalNot", {seen});
      seen = g("LogicalOr", {seen, chosen[i]});
      chosen[i] = g("LogicalAnd", {chosen[i], others});
    }
  };
  choose(v, false, top);
  choose(low, true, bottom);
  Value dh = Channel(g, d, 0), ds = Channel(g, d, 1), dv = Channel(g, d, 2);
  Value has_value = g("Greater", {v, zero});
  Value has_range = g("LogicalAnd", {g("Greater", {range, zero}), has_value});
  Value has_low = g("Greater", {low, zero});
  Value per_range = g("DivNoNan", {one, range});
  // s = 1 - low / v.
  Value s_low = pick(has_low, g("Neg", {g("DivNoNan", {one, v})}), zero);
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

OpBuilder ColorOp(const char* name) {
  OpBuilder b(name);
  b.Input("images: T")
      .Output("output: T")
      .Attr("T: {half, bfloat16, float, double} = float")
      .Shape(HsvShape);
  return b;
}
[[maybe_unused]] const OpRegistrar kColorOps[] = {
    ColorOp("RGBToHSV")
        .Doc("Colours as hue, saturation and value.")
        .Gradient(HsvGradient)
        .GradientSkips({}, {0})
        .Cpu(ComputeFor<Pick<ColorChange::kToHsv>>),
    ColorOp("HSVToRGB")
        .Doc("Hue, saturation and value as red, green and blue.")
        .NoGradient()
        .Cpu(ComputeFor<Pick<ColorChange::kToRgb>>),
};

HR_OP(AdjustHue)
    .Input("images: T")
    .Input("delta: float")
    .Output("output: T")
    .Attr("T: {half, float} = float")
    .Doc("Turns the hue of colours by a part of the circle.")
    .Shape(AdjustShape<true>)
    .Vectorize(VectorizeFirst)
    .Cpu(ComputeFor<Pick<ColorChange::kHue>>);

HR_OP(AdjustSaturation)
    .Input("images: T")
    .Input("scale: float")
    .Output("output: T")
    .Attr("T: {half, float} = float")
    .Doc("Scales the saturation of colours.")
    .Shape(AdjustShape<false>)
    .Vectorize(VectorizeFirst)
    .Cpu(ComputeFor<Pick<ColorChange::kSaturation>>);

}  // namespace
}  // namespace headrace
