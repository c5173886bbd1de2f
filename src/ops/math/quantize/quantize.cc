// QuantizeV2 and Dequantize: floats to a quantized type over a range, and
// back. The modes differ in how levels are laid over the range.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/quantize/quantize_loops.h"
#include "ops/math/quantize/ranges.h"

namespace headrace {
namespace {

// A tensor as [outer, channels, inner], for ranges by channel.
struct Layout {
  int64_t outer = 1, channels = 1, inner;
  Layout(const Shape& s, int64_t axis) : inner(s.num_elements()) {
    if (axis < 0) return;
    const int a = static_cast<int>(axis);
    outer = s.Product(0, a);
    channels = s[a];
    inner = s.Product(a + 1, s.rank());
  }
  // Calls fn(begin, end) for the runs of a channel.
  template <typename F>
  void ForRuns(int64_t channel, F&& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t first = (o * channels + channel) * inner;
      ParallelFor(inner, 0.5, [&](int64_t begin, int64_t end) {
        fn(first + begin, first + end);
      });
    }
  }
  template <typename F>
  void ForEach(int64_t channel, F&& fn) const {
    ForRuns(channel, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  }
};

Status CheckRanges(const KernelContext& c, const Layout& l) {
  for (int i = 1; i <= 2; ++i) {
    if (c.input(i).num_elements() == l.channels) continue;
    return InvalidArgument(i == 1 ? "min_range" : "max_range", " has shape ",
                           c.input(i).shape(), ", but ", l.channels,
                           " value(s) are needed");
  }
  return OkStatus();
}

// Levels on both sides of 0, one step apart: "SCALED".
template <typename I>
struct ScaledLevels {
  float scale, low, high;
  ScaledLevels(float min, float max, bool narrow) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    // Narrow: as many levels below 0 as above.
    const float first = std::numeric_limits<I>::lowest() + (narrow ? 1 : 0);
    const float last = static_cast<float>(std::numeric_limits<I>::max());
    // A side of the range without a sign of its own decides nothing; of two,
    // the one that reaches farther.
    scale = std::min(first * min > 0 ? first / min : kLargest,
                     last * max > 0 ? last / max : kLargest);
    low = first / scale;
    high = last / scale;
  }
};

struct Range {
  float min, max;
};
StatusOr<Range> WidenRange(const ResolvedOp& op, float min, float max) {
  // Not min > max: NaN is refused, too.
  if (!(min <= max)) {
    return InvalidArgument(
        "input_max_range must be larger than input_min_range.");
  }
  // The range contains 0, so that 0 has a level.
  const float low = std::min(0.0f, min);
  // Never so narrow that levels fall together.
  const float room = std::max(1.0f, std::max(std::fabs(min), std::fabs(max))) *
                     op.float_attr("ensure_minimum_range");
  return Range{low, std::max(0.0f, std::max(max, low + room))};
}

template <typename I>
Status Quantize(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const std::string& mode = op.string_attr("mode");
  const bool even = op.string_attr("round_mode") == "HALF_TO_EVEN";
  const Layout l(c.input(0).shape(), op.int_attr("axis"));
  HR_RETURN_IF_ERROR(CheckRanges(c, l));
  const float* x = c.in<float>(0);
  I* to = static_cast<I*>(c.output(0).raw());
  auto put = [&](int64_t channel, const LevelScale& scale) {
    l.ForRuns(channel, [&](int64_t begin, int64_t end) {
      AtActiveLevel([&](auto level) {
        return LevelLoop<level>(scale, x + begin, to + begin, end - begin);
      });
    });
  };
  for (int64_t k = 0; k < l.channels; ++k) {
    HR_ASSIGN_OR_RETURN(Range r,
                        WidenRange(op, c.in<float>(1)[k], c.in<float>(2)[k]));
    if (mode == "SCALED") {
      const ScaledLevels<I> v(r.min, r.max, op.bool_attr("narrow_range"));
      put(k, {v.low, v.high, 0, v.scale, 0, even});
      // The range that the levels have is given back, not the one asked for.
      r = {v.low, v.high};
    } else if (mode == "MIN_FIRST") {
      const EvenLevels<I> v(r.min, r.max);
      l.ForEach(k, [&](int64_t i) { to[i] = v.ToLevel(x[i]); });
    } else {
      const double steps = kLevelSteps<I>;
      // n levels have n - 1 steps between them.
      const float scale = static_cast<float>((steps - 1) / (r.max - r.min));
      // Signed types: the range begins at the lowest level, not at 0.
      const float half =
          std::is_signed_v<I> ? static_cast<float>(steps / 2) : 0;
      put(k, {r.min, r.max, r.min, scale, half, false});
    }
    c.out<float>(1)[k] = r.min;
    c.out<float>(2)[k] = r.max;
  }
  return OkStatus();
}

template <typename I, typename Out>
Status Dequantize(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const std::string& mode = op.string_attr("mode");
  const Layout l(c.input(0).shape(), op.int_attr("axis"));
  HR_RETURN_IF_ERROR(CheckRanges(c, l));
  const I* q = static_cast<const I*>(c.input(0).raw());
  Out* to = c.out<Out>(0);
  constexpr double kSteps = kLevelSteps<I>;
  constexpr float kTop = static_cast<float>(std::numeric_limits<I>::max());
  constexpr float kLow = static_cast<float>(std::numeric_limits<I>::lowest());
  for (int64_t k = 0; k < l.channels; ++k) {
    const float min = c.in<float>(1)[k], max = c.in<float>(2)[k];
    if (mode == "SCALED") {
      const float low = kLow + (op.bool_attr("narrow_range") ? 1 : 0);
      const float scale =
          std::is_signed_v<I> ? std::max(min / low, max / kTop) : max / kTop;
      l.ForEach(k, [&](int64_t i) {
        to[i] = static_cast<Out>(static_cast<float>(q[i]) * scale);
      });
    } else if (mode == "MIN_FIRST") {
      const EvenLevels<I> v(min, max);
      l.ForEach(k,
                [&](int64_t i) { to[i] = static_cast<Out>(v.ToFloat(q[i])); });
    } else {
      const float scale = static_cast<float>((max - min) / (kSteps - 1));
      const float half =
          std::is_signed_v<I> ? static_cast<float>(kSteps / 2) : 0;
      l.ForEach(k, [&](int64_t i) {
        const float v = (static_cast<float>(q[i]) + half) * scale + min;
        to[i] = static_cast<Out>(v);
      });
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> MakeQuantize(const ResolvedOp& op) {
  const std::string& mode = op.string_attr("mode");
  const std::string& round = op.string_attr("round_mode");
  if (round == "HALF_TO_EVEN" && mode != "SCALED") {
    return InvalidArgument("Round mode 'HALF_TO_EVEN' only supported for mode ",
                           "'SCALED', but mode is '", mode, "'.");
  }
  std::unique_ptr<Kernel> kernel;
  DispatchDType(op.type_attr("T"), QuantizedTypes{}, [&](auto tag) {
    kernel = MakeKernel(Quantize<LevelOf<typename decltype(tag)::type>>);
  });
  return kernel;
}
StatusOr<std::unique_ptr<Kernel>> MakeDequantize(const ResolvedOp& op) {
  std::unique_ptr<Kernel> kernel;
  const bool small = op.type_attr("dtype") == DType::kBfloat16;
  DispatchDType(op.type_attr("T"), QuantizedTypes{}, [&](auto tag) {
    using I = LevelOf<typename decltype(tag)::type>;
    kernel = MakeKernel(small ? Dequantize<I, bfloat16> : Dequantize<I, float>);
  });
  return kernel;
}

// The ranges are scalars, or vectors with an element a channel.
Status RangeShape(ShapeContext& c) {
  const int64_t axis = c.op().int_attr("axis");
  const Shape& x = c.input(0);
  if (axis < -1) {
    return InvalidArgument("axis should be at least -1, got ", axis);
  }
  if (x.known_rank() && axis >= x.rank()) {
    return InvalidArgument("Axis must be less than input dimension(", x.rank(),
                           "), got ", axis);
  }
  for (int i = 1; i <= 2; ++i) {
    HR_RETURN_IF_ERROR(axis < 0 ? CheckRankAtMost(c.input(i), 1)
                                : CheckRank(c.input(i), 1));
  }
  c.set_output(0, x);
  Shape range;
  if (axis >= 0) {
    range.AddDim(x.known_rank() ? x[static_cast<int>(axis)] : Shape::kUnknown);
  }
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, range);
  return OkStatus();
}

HR_OP(QuantizeV2)
    .Input("input: float")
    .Input("min_range: float")
    .Input("max_range: float")
    .Output("output: T")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("T: quantizedtype")
    .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
    .Attr(
        "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = "
        "'HALF_AWAY_FROM_ZERO'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .Attr("ensure_minimum_range: float = 0.01")
    .Doc("The input on the levels of T that are laid over the range.")
    .Shape(RangeShape)
    .Cpu(MakeQuantize);
HR_OP(Dequantize)
    .Input("input: T")
    .Input("min_range: float")
    .Input("max_range: float")
    .Output("output: dtype")
    .Attr("T: quantizedtype")
    .Attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
    .Attr("narrow_range: bool = false")
    .Attr("axis: int = -1")
    .Attr("dtype: {bfloat16, float} = DT_FLOAT")
    .Doc("The numbers that levels of T laid over the range stand for.")
    .Shape(RangeShape)
    .Cpu(MakeDequantize);

}  // namespace
}  // namespace headrace
