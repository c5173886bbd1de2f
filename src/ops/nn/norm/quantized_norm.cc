// QuantizedBatchNormWithGlobalNormalization and QuantizedInstanceNorm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/math/loops/wrapping.h"
#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

// --- Batch normalization: t, m, v, beta, gamma, each before its range.

Status QuantizedBatchNormShape(ShapeContext& c) {
  Shape out = c.input(0);
  if (out.known_rank() && out.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional", out);
  }
  for (int i = 0; i < 15; ++i) {
    const Shape& s = c.input(i);
    if (i % 3 != 0) {
      if (!s.fully_known() || s.num_elements() == 1) continue;
      return InvalidArgument(c.op().def().inputs[i].name,
                             " must have 1 element");
    }
    if (i == 0 || !s.known_rank()) continue;
    HR_RETURN_IF_ERROR(CheckRank(s, 1));
    if (!out.known_rank()) continue;
    if (s[0] >= 0 && out[3] >= 0 && s[0] != out[3]) {
      return InvalidArgument("Must provide as many values of ",
                             c.op().def().inputs[i].name,
                             " as the last dimension of the input tensor: ", s,
                             " vs. ", c.input(0));
    }
    // -1 stands for unknown.
    out.set_dim(3, std::max(s[0], out[3]));
  }
  c.set_output(0, std::move(out));
  SetRangeOutputs(c);
  return OkStatus();
}

Status QuantizedBatchNorm(KernelContext& c) {
  // All in fixed point, within a range that is wide enough.
  constexpr float kBound = 1 << 20;
  const PreciseLevels<int32_t> to(-kBound, kBound);
  SetRange(c, -kBound, kBound);
  auto levels = [&](int i) {
    return PreciseLevels<uint8_t>(*c.in<float>(i + 1), *c.in<float>(i + 2));
  };
  const auto from = levels(0), mean = levels(3), variance = levels(6),
             beta = levels(9), gamma = levels(12);
  const bool scaled = c.op().bool_attr("scale_after_normalization");
  const float epsilon = c.op().float_attr("variance_epsilon");
  // Products of two levels have the unit squared: one division brings it back.
  const int32_t one = to.ToLevel(1);
  const int64_t n = c.input(0).num_elements(), depth = c.input(0).dim(3);
  const uint8_t* x = LevelsIn<uint8_t>(c, 0);
  int32_t* y = LevelsOut<int32_t>(c, 0);
  for (int64_t d = 0; n > 0 && d < depth; ++d) {
    auto value = [&](const PreciseLevels<uint8_t>& l, int i) {
      return l.ToFloat(LevelsIn<uint8_t>(c, i)[d]);
    };
    float scale = 1.0f / std::sqrt(value(variance, 6) + epsilon);
    if (scaled) scale *= value(gamma, 12);
    const float offset = -value(mean, 3) * scale + value(beta, 9);
    const int32_t factor = to.ToLevel(scale), add = to.ToLevel(offset);
    for (int64_t i = d; i < n; i += depth) {
      const int32_t level = to.ToLevel(from.ToFloat(x[i]));
      // Wraps, as upstream's.
      y[i] = Plus(Times(level, factor) / one, add);
    }
  }
  return OkStatus();
}

ComputeFn PickBatchNorm(const ResolvedOp& op) {
  const bool known = op.type_attr("Tinput") == DType::kQuint8 &&
                     op.type_attr("out_type") == DType::kQint32;
  return known ? QuantizedBatchNorm : nullptr;
}

// --- Instance normalization.

Status InstanceNormShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 4));
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 1, 3));
  c.set_output(0, c.input(0));
  SetRangeOutputs(c);
  return OkStatus();
}

// Each channel of each image less its mean, over its deviation.
void NormalizeInstances(const KernelContext& c, float* out) {
  const EvenLevels<uint8_t> from(*c.in<float>(1), *c.in<float>(2));
  const Tensor& in = c.input(0);
  const int64_t channels = in.dim(3), pixels = in.dim(1) * in.dim(2);
  const float epsilon = c.op().float_attr("variance_epsilon");
  for (int64_t image = 0; image < in.dim(0); ++image) {
    const int64_t first = image * pixels * channels;
    const uint8_t* x = LevelsIn<uint8_t>(c, 0) + first;
    float* y = out + first;
    for (int64_t k = 0; k < channels; ++k) {
      // Two passes: sums of squares alone would cancel for large means.
      double sum = 0, squares = 0;
      for (int64_t i = k; i < pixels * channels; i += channels) {
        sum += from.ToFloat(x[i]);
      }
      const double mean = sum / pixels;
      for (int64_t i = k; i < pixels * channels; i += channels) {
        const double away = from.ToFloat(x[i]) - mean;
        squares += away * away;
      }
      const double scale = 1 / std::sqrt(squares / pixels + epsilon);
      for (int64_t i = k; i < pixels * channels; i += channels) {
        y[i] = static_cast<float>((from.ToFloat(x[i]) - mean) * scale);
      }
    }
  }
}

Status InstanceNorm(KernelContext& c) {
  const float in_min = *c.in<float>(1), in_max = *c.in<float>(2);
  // Not >=: NaN is refused, too.
  if (!(in_min < in_max)) {
    return InvalidArgument("input_min must be less than input_max : ", in_min,
                           " >= ", in_max);
  }
  const ResolvedOp& op = c.op();
  const int64_t n = c.input(0).num_elements();
  HR_ASSIGN_OR_RETURN(Tensor made,
                      c.Temporary(DType::kFloat, c.input(0).shape()));
  const float* from = made.data<float>();
  if (n > 0) NormalizeInstances(c, made.data<float>());
  float low = op.float_attr("given_y_min"), high = op.float_attr("given_y_max");
  if (!op.bool_attr("output_range_given")) {
    low = n > 0 ? *std::min_element(from, from + n) : 0;
    high = n > 0 ? *std::max_element(from, from + n) : 0;
    const float least = op.float_attr("min_separation");
    // A range without width has no levels.
    if (high - low < least) high = low + least;
  }
  const EvenLevels<uint8_t> to(low, high);
  std::transform(from, from + n, LevelsOut<uint8_t>(c, 0),
                 [&](float v) { return to.ToLevel(v); });
  SetRange(c, low, high);
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> BindInstanceNorm(const ResolvedOp& op) {
  if (op.type_attr("T") != DType::kQuint8) return nullptr;
  const float low = op.float_attr("given_y_min");
  const float high = op.float_attr("given_y_max");
  if (op.bool_attr("output_range_given") && !(low < high)) {
    return InvalidArgument("given_y_min must be less than given_y_max : ", low,
                           " >= ", high);
  }
  return MakeKernel(InstanceNorm);
}

HR_OP(QuantizedBatchNormWithGlobalNormalization)
    .Input("t: Tinput")
    .Input("t_min: float")
    .Input("t_max: float")
    .Input("m: Tinput")
    .Input("m_min: float")
    .Input("m_max: float")
    .Input("v: Tinput")
    .Input("v_min: float")
    .Input("v_max: float")
    .Input("beta: Tinput")
    .Input("beta_min: float")
    .Input("beta_max: float")
    .Input("gamma: Tinput")
    .Input("gamma_min: float")
    .Input("gamma_max: float")
    .Output("result: out_type")
    .Output("result_min: float")
    .Output("result_max: float")
    .Attr("Tinput: quantizedtype")
    .Attr("out_type: quantizedtype")
    .Attr("variance_epsilon: float")
    .Attr("scale_after_normalization: bool")
    .Doc("BatchNormWithGlobalNormalization of quantized images.")
    .Shape(QuantizedBatchNormShape)
    .Cpu(ComputeFor<PickBatchNorm>);
HR_OP(QuantizedInstanceNorm)
    .Input("x: T")
    .Input("x_min: float")
    .Input("x_max: float")
    .Output("y: T")
    .Output("y_min: float")
    .Output("y_max: float")
    .Attr("T: quantizedtype")
    .Attr("output_range_given: bool = false")
    .Attr("given_y_min: float = 0")
    .Attr("given_y_max: float = 0")
    .Attr("variance_epsilon: float = 1e-05")
    .Attr("min_separation: float = 0.001")
    .Doc("Each channel of each image with mean 0 and deviation 1.")
    .Shape(InstanceNormShape)
    .Cpu(BindInstanceNorm);

}  // namespace
}  // namespace headrace
