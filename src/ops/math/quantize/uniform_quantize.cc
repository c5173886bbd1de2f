// UniformQuantize, UniformDequantize and UniformRequantize.
#include <cmath>
#include <limits>
#include <vector>

#include "ops/math/loops/wrapping.h"
#include "ops/math/quantize/quantized.h"
#include "ops/math/quantize/uniform.h"

namespace headrace {
namespace {

// Cut to int32; what is not a number becomes the lowest.
int64_t ToInt32(float v) {
  // Not v <=: catches NaN.
  if (!(v > -2147483648.0f)) return std::numeric_limits<int32_t>::lowest();
  if (v >= 2147483648.0f) return std::numeric_limits<int32_t>::max();
  return static_cast<int64_t>(v);
}

template <typename I>
Status UniformQuantize(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const UniformParams p(c, "", shape, 1);
  const UniformBounds<I> bounds(c.op(), "");
  const float* x = c.in<float>(0);
  I* out = LevelsOut<I>(c, 0);
  const int64_t n = shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.ChannelOf(i);
    // The reciprocal first, as upstream: x / scale may round the other way.
    const float per_scale = 1.0f / p.scale(k);
    // Half up, as upstream.
    out[i] =
        bounds.Cut(ToInt32(std::floor(x[i] * per_scale + 0.5f)) + p.zero(k));
  }
  return OkStatus();
}

template <typename I>
Status UniformDequantize(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const UniformParams p(c, "", shape, 1);
  const I* x = LevelsIn<I>(c, 0);
  float* out = c.out<float>(0);
  const int64_t n = shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.ChannelOf(i);
    // In float before the difference: a zero point beyond the type's levels
    // must not wrap.
    out[i] =
        (static_cast<float>(x[i]) - static_cast<float>(p.zero(k))) * p.scale(k);
  }
  return OkStatus();
}

template <typename I>
Status UniformRequantize(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const UniformParams from(c, "input_", shape, 1);
  const UniformParams to(c, "output_", shape, 3);
  const UniformBounds<int8_t> bounds(c.op(), "output_");
  // One of the two may have a pair for all.
  const UniformParams& wider = from.channels() > to.channels() ? from : to;
  std::vector<FixedFactor> factors;
  for (int64_t k = 0; k < wider.channels(); ++k) {
    HR_ASSIGN_OR_RETURN(
        FixedFactor f, FixedFactor::Make(static_cast<double>(from.scale_of(k)) /
                                         to.scale_of(k)));
    factors.push_back(f);
  }
  const I* x = LevelsIn<I>(c, 0);
  int8_t* out = LevelsOut<int8_t>(c, 0);
  const int64_t n = shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = wider.ChannelOf(i);
    // Wraps.
    const int32_t above = Minus<int32_t>(x[i], from.zero_of(k));
    out[i] = bounds.Cut(int64_t{factors[k](above)} + to.zero_of(k));
  }
  return OkStatus();
}

Status UniformShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckUniform(c, "", c.input(0), 1));
  return UnchangedShape(c);
}
Status UniformRequantizeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckUniform(c, "input_", c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckUniform(c, "output_", c.input(0), 3));
  const int64_t in = c.op().int_attr("input_quantization_axis");
  const int64_t out = c.op().int_attr("output_quantization_axis");
  if (in >= 0 && out >= 0 && in != out) {
    return InvalidArgument(
        "If input and output is both per-axis quantized, the quantization axis "
        "must be same, but given input_quantization_axis ",
        in, " and output_quantization_axis ", out);
  }
  return UnchangedShape(c);
}

ComputeFn PickUniformQuantize(const ResolvedOp& op) {
  const DType to = op.type_attr("Tout");
  return to == DType::kQint8    ? UniformQuantize<int8_t>
         : to == DType::kQuint8 ? UniformQuantize<uint8_t>
                                : UniformQuantize<int32_t>;
}
ComputeFn PickUniformDequantize(const ResolvedOp& op) {
  const DType from = op.type_attr("Tin");
  return from == DType::kQint8    ? UniformDequantize<int8_t>
         : from == DType::kQuint8 ? UniformDequantize<uint8_t>
                                  : UniformDequantize<int32_t>;
}
ComputeFn PickUniformRequantize(const ResolvedOp& op) {
  if (op.type_attr("Tout") != DType::kQint8) return nullptr;
  return op.type_attr("Tin") == DType::kQint8 ? UniformRequantize<int8_t>
                                              : UniformRequantize<int32_t>;
}

HR_OP(UniformQuantize)
    .Input("input: Tin")
    .Input("scales: float")
    .Input("zero_points: int32")
    .Output("output: Tout")
    .Attr("Tin: {float}")
    .Attr("Tout: {qint8, quint8, qint32}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .Doc("input / scale + zero point, rounded and cut.")
    .Shape(UniformShape)
    .Cpu(ComputeFor<PickUniformQuantize>);
HR_OP(UniformDequantize)
    .Input("input: Tin")
    .Input("scales: float")
    .Input("zero_points: int32")
    .Output("output: Tout")
    .Attr("Tin: {qint8, quint8, qint32}")
    .Attr("Tout: {float}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .Doc("(input - zero point) * scale.")
    .Shape(UniformShape)
    .Cpu(ComputeFor<PickUniformDequantize>);
HR_OP(UniformRequantize)
    .Input("input: Tin")
    .Input("input_scales: float")
    .Input("input_zero_points: int32")
    .Input("output_scales: float")
    .Input("output_zero_points: int32")
    .Output("output: Tout")
    .Attr("Tin: {qint8, qint32}")
    .Attr("Tout: {qint8, qint32}")
    .Attr("input_quantization_axis: int = -1")
    .Attr("input_quantization_min_val: int")
    .Attr("input_quantization_max_val: int")
    .Attr("output_quantization_axis: int = -1")
    .Attr("output_quantization_min_val: int")
    .Attr("output_quantization_max_val: int")
    .Doc("The input's numbers with other scales and zero points.")
    .Shape(UniformRequantizeShape)
    .Cpu(ComputeFor<PickUniformRequantize>);

}  // namespace
}  // namespace headrace
