// From 32-bit levels to narrower ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op/op.h"
#include "ops/math/quantize/ranges.h"

namespace headrace {
namespace {

// The range that the levels of input 0 really use; never above 0 at its foot.
void UsedRange(KernelContext& c, float* low, float* high) {
  const auto* q = static_cast<const int32_t*>(c.input(0).raw());
  const int64_t n = c.input(0).num_elements();
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t most = std::numeric_limits<int32_t>::lowest();
  for (int64_t i = 0; i < n; ++i) {
    least = std::min(least, q[i]);
    most = std::max(most, q[i]);
  }
  const PreciseLevels<int32_t> levels(*c.in<float>(1), *c.in<float>(2));
  *low = std::min(0.0f, levels.ToFloat(least));
  *high = levels.ToFloat(most);
}

// What is not a number becomes 0, what is too large is cut.
int64_t ToFixed(double v) {
  // 2^60, so that the sums that follow fit int64.
  constexpr double kFar = 1152921504606846976.0;
  if (std::isnan(v)) return 0;
  return static_cast<int64_t>(std::clamp(v, -kFar, kFar));
}

// Levels of int32 over one range as levels of uint8 over another, with 16 bits
// behind the point: upstream's sums, whose roundings differ from those of
// floats.
class FixedPoint {
 public:
  FixedPoint(float in_min, float in_max, float min, float max) {
    const float in_range = in_max - in_min, range = max - min;
    // One level for everything: the middle, by offset_ alone.
    if (range == 0) return;
    const auto per_unit = static_cast<float>(255.0 / range);
    // int32's levels lie around the middle of their range.
    const float middle = (in_min + in_max) / 2;
    scale_ = ToFixed(255.0 * kOne * in_range / range);
    offset_ = ToFixed(middle * per_unit * kOne) -
              ToFixed(std::round(kOne * (min * 255.0) / range)) + kOne / 2;
  }
  uint8_t operator()(int32_t level) const {
    // The product wraps around.
    const auto product = static_cast<int64_t>(static_cast<uint64_t>(level) *
                                              static_cast<uint64_t>(scale_));
    // The scale has 16 bits behind the point, the level 32: 48 less 32 leave
    // 16.
    const int64_t v = ((product >> 32) + offset_) / kOne;
    return static_cast<uint8_t>(std::clamp<int64_t>(v, 0, 255));
  }

 private:
  // 16 bits behind the point; the offset begins with a half, which rounds.
  static constexpr int kOne = 1 << 16;
  int64_t scale_ = 0, offset_ = kOne / 2;
};

template <typename I>
void Convert(KernelContext& c, float low, float high) {
  const float in_low = *c.in<float>(1), in_high = *c.in<float>(2);
  const auto* q = static_cast<const int32_t*>(c.input(0).raw());
  I* out = static_cast<I*>(c.output(0).raw());
  const int64_t n = c.input(0).num_elements();
  // Upstream has fixed-point sums for this pair of types only.
  if constexpr (std::is_same_v<I, uint8_t>) {
    std::transform(q, q + n, out, FixedPoint(in_low, in_high, low, high));
  } else {
    const PreciseLevels<int32_t> from(in_low, in_high);
    const PreciseLevels<I> to(low, high);
    for (int64_t i = 0; i < n; ++i) out[i] = to.ToLevel(from.ToFloat(q[i]));
  }
  *c.out<float>(1) = low;
  *c.out<float>(2) = high;
}

template <typename I>
Status Requantize(KernelContext& c) {
  const float low = *c.in<float>(3), high = *c.in<float>(4);
  // Not low > 0: NaN is refused, too.
  if (!(low <= 0)) {
    return InvalidArgument("requested_output_min must be <= 0, but got ", low);
  }
  if (!(high >= low)) {
    return InvalidArgument(
        "requested_output_max must be >= requested_output_min, but got ", high,
        " and ", low);
  }
  Convert<I>(c, low, high);
  return OkStatus();
}
template <typename I>
Status Shrink(KernelContext& c) {
  float low, high;
  UsedRange(c, &low, &high);
  Convert<I>(c, low, high);
  return OkStatus();
}
Status RunRange(KernelContext& c) {
  UsedRange(c, c.out<float>(0), c.out<float>(1));
  return OkStatus();
}

ComputeFn PickRequantize(const ResolvedOp& op) {
  if (op.type_attr("Tinput") != DType::kQint32) return nullptr;
  const DType out = op.type_attr("out_type");
  return out == DType::kQint8    ? Requantize<int8_t>
         : out == DType::kQuint8 ? Requantize<uint8_t>
                                 : nullptr;
}
ComputeFn PickShrink(const ResolvedOp& op) {
  const bool known = op.type_attr("Tinput") == DType::kQint32 &&
                     op.type_attr("out_type") == DType::kQuint8;
  return known ? Shrink<uint8_t> : nullptr;
}
ComputeFn PickRange(const ResolvedOp& op) {
  return op.type_attr("Tinput") == DType::kQint32 ? RunRange : nullptr;
}

Status ConvertShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 0));
  }
  c.set_output(0, c.input(0));
  c.set_output(1, Shape());
  c.set_output(2, Shape());
  return OkStatus();
}
Status GivenRangeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  return ScalarShape(c);
}

HR_OP(Requantize)
    .Input("input: Tinput")
    .Input("input_min: float")
    .Input("input_max: float")
    .Input("requested_output_min: float")
    .Input("requested_output_max: float")
    .Output("output: out_type")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .Doc("The input's numbers on the levels of a narrower type.")
    .Shape(ConvertShape)
    .Cpu(ComputeFor<PickRequantize>);
HR_OP(QuantizeDownAndShrinkRange)
    .Input("input: Tinput")
    .Input("input_min: float")
    .Input("input_max: float")
    .Output("output: out_type")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .Doc("Requantize over the range that the input really uses.")
    .Shape(ConvertShape)
    .Cpu(ComputeFor<PickShrink>);
HR_OP(RequantizationRange)
    .Input("input: Tinput")
    .Input("input_min: float")
    .Input("input_max: float")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("Tinput: quantizedtype")
    .Doc("The range that the input really uses.")
    .Shape(GivenRangeShape)
    .Cpu(ComputeFor<PickRange>);

}  // namespace
}  // namespace headrace
