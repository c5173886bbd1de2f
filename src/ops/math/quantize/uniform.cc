#include "ops/math/quantize/uniform.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headrace {

Status CheckUniform(ShapeContext& c, const std::string& prefix, const Shape& x,
                    int at) {
  const int64_t axis = c.op().int_attr(prefix + "quantization_axis");
  const Shape &scales = c.input(at), &zeros = c.input(at + 1);
  if (axis < -1) {
    return InvalidArgument("quantization_axis must be >= -1, given: ", axis);
  }
  if (x.known_rank() && axis >= x.rank()) {
    return InvalidArgument(
        "quantization_axis must be -1 or in range [0, input.rank), but given ",
        axis);
  }
  if (!scales.CompatibleWith(zeros)) {
    return InvalidArgument(
        "scales and zero_points shape must be same, but given scales shape ",
        scales, " and zero_points shape ", zeros);
  }
  // Either tells the shape; they are the same where both are known.
  const Shape& s = scales.known_rank() ? scales : zeros;
  if (!s.known_rank()) return OkStatus();
  if (axis == -1) {
    if (s.rank() == 0) return OkStatus();
    return InvalidArgument(
        "If quantization_axis is -1, scales and zero_points must be scalar "
        "tensors, but given scales shape ",
        scales, " and zero_points shape ", zeros);
  }
  const int64_t size =
      x.known_rank() ? x[static_cast<int>(axis)] : Shape::kUnknown;
  const bool differs = s.rank() == 1 && size >= 0 && s[0] >= 0 && s[0] != size;
  if (s.rank() == 1 && !differs) return OkStatus();
  return InvalidArgument(
      "If quantization_axis is not -1, scales and zero_points must be a tensor "
      "of rank 1 and the size must be equal to the "
      "input.dim_size(quantization_axis), but given quantization_axis ",
      axis, " and scales shape ", scales, " for ", x);
}

UniformParams::UniformParams(const KernelContext& c, const std::string& prefix,
                             const Shape& x, int at)
    : scales_(c.in<float>(at)), zeros_(c.in<int32_t>(at + 1)) {
  const auto axis =
      static_cast<int>(c.op().int_attr(prefix + "quantization_axis"));
  // One pair for all: every element's channel is 0.
  if (axis < 0) return;
  channels_ = x[axis];
  inner_ = x.Product(axis + 1, x.rank());
}

template <typename I>
UniformBounds<I>::UniformBounds(const ResolvedOp& op,
                                const std::string& prefix) {
  constexpr int64_t low = std::numeric_limits<I>::lowest();
  constexpr int64_t high = std::numeric_limits<I>::max();
  // Attributes are int64 and may name more than the type holds.
  low_ = std::clamp(op.int_attr(prefix + "quantization_min_val"), low, high);
  high_ = std::clamp(op.int_attr(prefix + "quantization_max_val"), low, high);
}
template <typename I>
I UniformBounds<I>::Cut(int64_t v) const {
  // The lower bound wins where the two cross.
  return static_cast<I>(std::max(low_, std::min(v, high_)));
}
template class UniformBounds<int8_t>;
template class UniformBounds<uint8_t>;
template class UniformBounds<int32_t>;

Status CheckScales(const KernelContext& c, StringView name, int at) {
  const float* scales = c.in<float>(at);
  for (int64_t i = 0; i < c.input(at).num_elements(); ++i) {
    if (scales[i] > 0 && std::isfinite(scales[i])) continue;
    return InvalidArgument(name, " scales elements must be all positive.");
  }
  return OkStatus();
}

OwnLevels::OwnLevels(const float* x, int64_t n) {
  double low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, static_cast<double>(x[i]));
    high = std::max(high, static_cast<double>(x[i]));
  }
  scale_ = (high - low) / 255;
  if (!(scale_ > 0)) return;
  // From the end that rounds less, as upstream.
  const double down = low / scale_, up = high / scale_;
  zero_ = 128 - down < 127 + up ? -128 - down : 127 - up;
  // Of an infinite range nothing is known but that it has a 0.
  zero_ =
      std::isfinite(zero_) ? std::clamp(std::round(zero_), -128.0, 127.0) : 0.0;
}

int32_t OwnLevels::operator()(float v) const {
  if (!(scale_ > 0)) return 0;
  const double level = std::round(v / scale_) + zero_;
  if (std::isnan(level)) return 0;
  return static_cast<int32_t>(std::clamp(level, -128.0, 127.0) - zero_);
}

StatusOr<FixedFactor> FixedFactor::Make(double factor) {
  // A scale of 0 would make it infinite.
  if (!std::isfinite(factor)) {
    return InvalidArgument("the ratio of scales must be finite, but is ",
                           factor);
  }
  FixedFactor f;
  int exponent;
  // The factor as m 2^e with m in [1/2, 1), m in 31 bits.
  auto q = static_cast<int64_t>(
      std::round(std::frexp(factor, &exponent) * 2147483648.0));
  // Rounded up to 1: half of it, one exponent further.
  if (std::abs(q) == int64_t{1} << 31) {
    q /= 2;
    ++exponent;
  }
  // Smaller than one half of the last place of any product: 0.
  if (q == 0 || exponent < -31) return f;
  // No shift to the left: the largest factor that there is.
  if (exponent > 30) {
    exponent = 30;
    q = q > 0 ? std::numeric_limits<int32_t>::max()
              : -std::numeric_limits<int32_t>::max();
  }
  f.factor_ = static_cast<int32_t>(q);
  f.shift_ = 31 - exponent;
  return f;
}

}  // namespace headrace
