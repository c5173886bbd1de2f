// FakeQuant ops: floats moved to the levels that a quantized type would have.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "op/op.h"
#include "ops/math/quantize/quantize_loops.h"

namespace headrace {
namespace {

// The levels nearest to [min, max] that contain 0 exactly.
struct Levels {
  float min = 0, max = 0, scale = 0, inverse = 0;
  bool empty = false;  // min and max are both 0

  Levels(float low, float high, int bits, bool narrow) {
    if (low == 0 && high == 0) {
      empty = true;
      return;
    }
    const float first = narrow ? 1 : 0;
    const float last = static_cast<float>((int64_t{1} << bits) - 1);
    scale = (high - low) / (last - first);
    inverse = (last - first) / (high - low);
    const float zero = first - low / scale;
    // 0 falls on a level exactly: padding with zeros must stay zero (Jacob et
    // al., 2018).
    const float nudged = zero < first  ? first
                         : zero > last ? last
                                       : std::round(zero);
    min = (first - nudged) * scale;
    max = (last - nudged) * scale;
  }
  float Apply(float x) const {
    if (empty) return 0;
    // A NaN becomes the least.
    const float raised = x > min ? x : min;
    const float clamped = raised < max ? raised : max;
    // As upstream: half up in every sign.
    return std::floor(clamped * inverse + 0.5f) * scale;
  }
};

struct Options {
  int bits;
  bool narrow;
  explicit Options(const ResolvedOp& op)
      : bits(static_cast<int>(op.int_attr("num_bits"))),
        narrow(op.bool_attr("narrow_range")) {}
  Levels For(float low, float high) const { return {low, high, bits, narrow}; }
};

Status CheckBits(const ResolvedOp& op) {
  const int64_t bits = op.int_attr("num_bits");
  if (bits >= 2 && bits <= 16) return OkStatus();
  return InvalidArgument("num_bits must be between 2 and 16, inclusive");
}
StatusOr<Levels> ArgsLevels(const ResolvedOp& op) {
  HR_RETURN_IF_ERROR(CheckBits(op));
  const float low = op.float_attr("min"), high = op.float_attr("max");
  if (low >= high) {
    return InvalidArgument("min has to be smaller than max, was: ", low,
                           " >= ", high);
  }
  return Options(op).For(low, high);
}

void Quantize(const Levels& levels, const float* x, float* y, int64_t n) {
  if (levels.empty) {
    std::fill_n(y, n, 0.0f);
    return;
  }
  const FakeLevels fake{levels.min, levels.max, levels.inverse, levels.scale};
  ParallelFor(n, 0.5, [&](int64_t b, int64_t e) {
    AtActiveLevel([&](auto level) {
      return FakeQuantLoop<level>(fake, x + b, y + b, e - b);
    });
  });
}
// Gradients pass where x is inside; the sums outside belong to the bounds.
struct Outside {
  // In double, as many small gradients are added up.
  double low = 0, high = 0;
  void Pass(const Levels& v, float g, float x, float* y) {
    *y = 0;
    if (v.empty || (x >= v.min && x <= v.max)) {
      *y = g;
    } else if (x < v.min) {
      low += g;
    } else if (x > v.max) {
      high += g;
    }
  }
};

Status Args(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Levels levels, ArgsLevels(c.op()));
  Quantize(levels, c.in<float>(0), c.out<float>(0), c.input(0).num_elements());
  return OkStatus();
}
Status ArgsGradient(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Levels levels, ArgsLevels(c.op()));
  Outside outside;
  const int64_t n = c.input(0).num_elements();
  for (int64_t i = 0; i < n; ++i) {
    outside.Pass(levels, c.in<float>(0)[i], c.in<float>(1)[i],
                 c.out<float>(0) + i);
  }
  return OkStatus();
}
Status Vars(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckBits(c.op()));
  const Levels levels = Options(c.op()).For(*c.in<float>(1), *c.in<float>(2));
  Quantize(levels, c.in<float>(0), c.out<float>(0), c.input(0).num_elements());
  return OkStatus();
}
Status VarsGradient(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckBits(c.op()));
  const Levels levels = Options(c.op()).For(*c.in<float>(2), *c.in<float>(3));
  Outside outside;
  const int64_t n = c.input(0).num_elements();
  for (int64_t i = 0; i < n; ++i) {
    outside.Pass(levels, c.in<float>(0)[i], c.in<float>(1)[i],
                 c.out<float>(0) + i);
  }
  *c.out<float>(1) = static_cast<float>(outside.low);
  *c.out<float>(2) = static_cast<float>(outside.high);
  return OkStatus();
}
Status Channels(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckBits(c.op()));
  const Options options(c.op());
  const int64_t depth = c.input(1).num_elements();
  const int64_t n = c.input(0).num_elements();
  std::vector<Levels> levels;
  for (int64_t d = 0; d < depth; ++d) {
    levels.push_back(options.For(c.in<float>(1)[d], c.in<float>(2)[d]));
  }
  // The last dimension is the channels', so that they go round.
  for (int64_t i = 0, d = 0; i < n; ++i, d = d + 1 == depth ? 0 : d + 1) {
    c.out<float>(0)[i] = levels[d].Apply(c.in<float>(0)[i]);
  }
  return OkStatus();
}
Status ChannelsGradient(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckBits(c.op()));
  const Options options(c.op());
  const int64_t depth = c.input(2).num_elements();
  const int64_t n = c.input(0).num_elements();
  for (int64_t d = 0; d < depth; ++d) {
    const Levels levels = options.For(c.in<float>(2)[d], c.in<float>(3)[d]);
    Outside outside;
    // Channel by channel: the sums of each are in one place, and in order.
    for (int64_t i = d; i < n; i += depth) {
      outside.Pass(levels, c.in<float>(0)[i], c.in<float>(1)[i],
                   c.out<float>(0) + i);
    }
    c.out<float>(1)[d] = static_cast<float>(outside.low);
    c.out<float>(2)[d] = static_cast<float>(outside.high);
  }
  return OkStatus();
}

// --- Shapes: x like the first input (and the second, `same`), then two bounds
// --- of rank `rank` from input `first` on.
Status BoundsShape(ShapeContext& c, bool same, int first, int rank) {
  Shape x = c.input(0);
  if (same) {
    if (!x.CompatibleWith(c.input(1))) {
      return InvalidArgument("gradient and input must be the same size: ", x,
                             " vs. ", c.input(1));
    }
    HR_ASSIGN_OR_RETURN(x, MergeShapes(x, c.input(1)));
  }
  // 0: the bounds are attributes.
  for (int i = first; first > 0 && i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), rank));
    const Shape& s = c.input(i);
    if (rank == 0 || !s.known_rank() || !x.known_rank()) continue;
    if (x.rank() == 0) {
      return InvalidArgument("Shape must be at least rank 1 but is rank 0");
    }
    const int64_t depth = x[x.rank() - 1];
    if (s[0] >= 0 && depth >= 0 && s[0] != depth) {
      return InvalidArgument(i == first ? "min" : "max",
                             " has incorrect size, expected ", depth, " was ",
                             s[0]);
    }
  }
  c.set_output(0, x);
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, c.input(first));
  return OkStatus();
}
template <bool kSame, int kFirst, int kRank>
Status FakeShape(ShapeContext& c) {
  return BoundsShape(c, kSame, kFirst, kRank);
}

// --- Gradients.
AttrMap Shared(GradientContext& g) {
  return {{"num_bits", g.op().int_attr("num_bits")},
          {"narrow_range", g.op().bool_attr("narrow_range")}};
}
Status ArgsGrad(GradientContext& g) {
  AttrMap attrs = Shared(g);
  attrs.Set("min", g.op().float_attr("min"));
  attrs.Set("max", g.op().float_attr("max"));
  g.set(0, g("FakeQuantWithMinMaxArgsGradient", {g.grad(), g.input(0)}, attrs));
  return g.status();
}
Status BoundsGrad(GradientContext& g, const char* op) {
  ValueList all =
      g.All(op, {g.grad(), g.input(0), g.input(1), g.input(2)}, Shared(g));
  for (size_t i = 0; i < all.size(); ++i) g.set(static_cast<int>(i), all[i]);
  return g.status();
}
Status VarsGrad(GradientContext& g) {
  return BoundsGrad(g, "FakeQuantWithMinMaxVarsGradient");
}
Status ChannelsGrad(GradientContext& g) {
  return BoundsGrad(g, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

constexpr char kNumBits[] = "num_bits: int = 8";
constexpr char kNarrowRange[] = "narrow_range: bool = false";

HR_OP(FakeQuantWithMinMaxArgs)
    .Input("inputs: float")
    .Output("outputs: float")
    .Attr("min: float = -6")
    .Attr("max: float = 6")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("inputs moved to the nearest of 2^num_bits levels in [min, max].")
    .Shape(FakeShape<false, 0, 0>)
    .Gradient(ArgsGrad)
    .GradientSkips({}, {0})
    .InPlace({0})
    .Cpu(Compute<Args>);
HR_OP(FakeQuantWithMinMaxArgsGradient)
    .Input("gradients: float")
    .Input("inputs: float")
    .Output("backprops: float")
    .Attr("min: float = -6")
    .Attr("max: float = 6")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("The gradient of FakeQuantWithMinMaxArgs.")
    .Shape(FakeShape<true, 0, 0>)
    .NoGradient()
    .Cpu(Compute<ArgsGradient>);
HR_OP(FakeQuantWithMinMaxVars)
    .Input("inputs: float")
    .Input("min: float")
    .Input("max: float")
    .Output("outputs: float")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("inputs moved to the nearest of 2^num_bits levels in [min, max].")
    .Shape(FakeShape<false, 1, 0>)
    .Gradient(VarsGrad)
    .GradientSkips({}, {0})
    .InPlace({0})
    .Cpu(Compute<Vars>);
HR_OP(FakeQuantWithMinMaxVarsGradient)
    .Input("gradients: float")
    .Input("inputs: float")
    .Input("min: float")
    .Input("max: float")
    .Output("backprops_wrt_input: float")
    .Output("backprop_wrt_min: float")
    .Output("backprop_wrt_max: float")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("The gradient of FakeQuantWithMinMaxVars.")
    .Shape(FakeShape<true, 2, 0>)
    .NoGradient()
    .Cpu(Compute<VarsGradient>);
HR_OP(FakeQuantWithMinMaxVarsPerChannel)
    .Input("inputs: float")
    .Input("min: float")
    .Input("max: float")
    .Output("outputs: float")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("The same with a range for each index of the last dimension.")
    .Shape(FakeShape<false, 1, 1>)
    .Gradient(ChannelsGrad)
    .GradientSkips({}, {0})
    .InPlace({0})
    .Cpu(Compute<Channels>);
HR_OP(FakeQuantWithMinMaxVarsPerChannelGradient)
    .Input("gradients: float")
    .Input("inputs: float")
    .Input("min: float")
    .Input("max: float")
    .Output("backprops_wrt_input: float")
    .Output("backprop_wrt_min: float")
    .Output("backprop_wrt_max: float")
    .Attr(kNumBits)
    .Attr(kNarrowRange)
    .Doc("The gradient of FakeQuantWithMinMaxVarsPerChannel.")
    .Shape(FakeShape<true, 2, 1>)
    .NoGradient()
    .Cpu(Compute<ChannelsGradient>);

}  // namespace
}  // namespace headrace
