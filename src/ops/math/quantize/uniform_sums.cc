// UniformQuantizedAdd, UniformQuantizedClipByValue, UniformQuantizedDot and its
// form for floats.
#include <algorithm>
#include <vector>

#include "ops/math/elementwise/elementwise.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/products/gemm.h"
#include "ops/math/quantize/quantized.h"
#include "ops/math/quantize/uniform.h"

namespace headrace {
namespace {

// --- Sums.

// An operand's channels must be the output's.
Status CheckOperandAxis(ShapeContext& c, const std::string& name,
                        const Shape& x, const Shape& out) {
  const int64_t axis = c.op().int_attr(name + "_quantization_axis");
  const int64_t out_axis = c.op().int_attr("output_quantization_axis");
  if (axis == -1 && out_axis == -1) return OkStatus();
  const bool one = axis == -1 || out_axis == -1;
  const bool known = x.known_rank() && out.known_rank();
  // Broadcasting aligns shapes at their ends, so axes are compared from there.
  const bool apart = known && x.rank() - axis != out.rank() - out_axis;
  if (!one && !known) return OkStatus();
  if (!one && !apart) {
    const int64_t a = x[static_cast<int>(axis)];
    const int64_t b = out[static_cast<int>(out_axis)];
    if (a == b || a < 0 || b < 0) return OkStatus();
  }
  return InvalidArgument(name, " and output must be quantized along the same ",
                         "dimension, or both as a whole: axes ", axis, " of ",
                         x, " and ", out_axis, " of ", out);
}

Status UniformAddShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckUniform(c, "lhs_", c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckUniform(c, "rhs_", c.input(1), 4));
  HR_RETURN_IF_ERROR(BroadcastShape(c));
  const Shape& out = c.output(0);
  HR_RETURN_IF_ERROR(CheckUniform(c, "output_", out, 6));
  HR_RETURN_IF_ERROR(CheckOperandAxis(c, "lhs", c.input(0), out));
  return CheckOperandAxis(c, "rhs", c.input(1), out);
}

// Operand `i` with the output's scale and zero point 0.
StatusOr<Tensor> WithScaleOf(const KernelContext& c, int i,
                             const UniformParams& from,
                             const UniformParams& to) {
  const Tensor& x = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor made, c.Temporary(DType::kInt32, x.shape()));
  std::vector<FixedFactor> factors;
  // The output has as many channels or one pair for all.
  for (int64_t k = 0; k < from.channels(); ++k) {
    HR_ASSIGN_OR_RETURN(
        FixedFactor f,
        FixedFactor::Make(static_cast<double>(from.scale(k)) / to.scale_of(k)));
    factors.push_back(f);
  }
  const int32_t* q = LevelsIn<int32_t>(c, i);
  int32_t* out = made.data<int32_t>();
  for (int64_t e = 0; e < x.num_elements(); ++e) {
    const int64_t k = from.ChannelOf(e);
    out[e] = factors[k](Minus(q[e], from.zero(k)));
  }
  return made;
}

Status UniformAdd(KernelContext& c) {
  const Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const UniformParams to(c, "output_", out.shape(), 6);
  HR_ASSIGN_OR_RETURN(
      Tensor a,
      WithScaleOf(c, 0, UniformParams(c, "lhs_", c.input(0).shape(), 2), to));
  HR_ASSIGN_OR_RETURN(
      Tensor b,
      WithScaleOf(c, 1, UniformParams(c, "rhs_", c.input(1).shape(), 4), to));
  constexpr auto plus = [](int32_t x, int32_t y) { return Plus(x, y); };
  ComputeBinary(&ScalarBinaryLoop<plus, int32_t>, 1, a, b, out);
  const UniformBounds<int32_t> bounds(c.op(), "output_");
  int32_t* sums = LevelsOut<int32_t>(c, 0);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    // The zero point comes back last: the sums were of values.
    sums[i] = bounds.Cut(int64_t{sums[i]} + to.zero(to.ChannelOf(i)));
  }
  return OkStatus();
}

// --- Bounds.

Status UniformClipShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckUniform(c, "", c.input(0), 3));
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).CompatibleWith(c.input(3))) continue;
    return InvalidArgument("min and max must have the shape of scales, ",
                           c.input(3), ", but one has ", c.input(i));
  }
  return UnchangedShape(c);
}

Status UniformClip(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const UniformParams p(c, "", shape, 3);
  const int32_t *x = LevelsIn<int32_t>(c, 0), *low = LevelsIn<int32_t>(c, 1),
                *high = LevelsIn<int32_t>(c, 2);
  int32_t* out = LevelsOut<int32_t>(c, 0);
  const int64_t n = shape.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t k = p.ChannelOf(i);
    // The lower bound wins where the two cross, as upstream.
    out[i] = std::max(low[k], std::min(x[i], high[k]));
  }
  return OkStatus();
}

// --- Products.

Status UniformDotShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRank(a, 2));
  HR_RETURN_IF_ERROR(CheckRank(b, 2));
  auto size = [](const Shape& s, int d) {
    return s.known_rank() ? s[d] : Shape::kUnknown;
  };
  const int64_t left = size(a, 1), right = size(b, 0);
  if (left >= 0 && right >= 0 && left != right) {
    return InvalidArgument("lhs.dim_size(1) and rhs.dim_size(0) must be equal",
                           ", but given lhs shape ", a, " and rhs shape ", b);
  }
  const ResolvedOp& op = c.op();
  const int64_t rhs = op.int_attr("rhs_quantization_axis");
  const int64_t out = op.int_attr("output_quantization_axis");
  if (op.int_attr("lhs_quantization_axis") != -1) {
    return InvalidArgument("lhs_quantization_axis must be -1, but given ",
                           op.int_attr("lhs_quantization_axis"));
  }
  for (int64_t axis : {rhs, out}) {
    if (axis == -1 || axis == 1) continue;
    return InvalidArgument("rhs_quantization_axis and ",
                           "output_quantization_axis must be -1 or 1, but ",
                           "given ", axis);
  }
  // Sums of a column mix no scales only where rhs is by column, too.
  if (rhs == -1 && out == 1) {
    return InvalidArgument(
        "output cannot be quantized by channel where rhs is not");
  }
  Shape made{size(a, 0), size(b, 1)};
  HR_RETURN_IF_ERROR(CheckUniform(c, "lhs_", a, 2));
  HR_RETURN_IF_ERROR(CheckUniform(c, "rhs_", b, 4));
  HR_RETURN_IF_ERROR(CheckUniform(c, "output_", made, 6));
  c.set_output(0, std::move(made));
  return OkStatus();
}

// Input `i` less its zero points.
StatusOr<Tensor> LessZeros(const KernelContext& c, int i,
                           const UniformParams& p) {
  const Tensor& x = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor made, c.Temporary(DType::kInt32, x.shape()));
  const int8_t* q = LevelsIn<int8_t>(c, i);
  for (int64_t e = 0; e < x.num_elements(); ++e) {
    made.data<int32_t>()[e] = Minus<int32_t>(q[e], p.zero(p.ChannelOf(e)));
  }
  return made;
}

Status UniformDot(KernelContext& c) {
  const Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const UniformParams lhs(c, "lhs_", c.input(0).shape(), 2);
  const UniformParams rhs(c, "rhs_", c.input(1).shape(), 4);
  const UniformParams to(c, "output_", out.shape(), 6);
  const UniformBounds<int32_t> bounds(c.op(), "output_");
  HR_ASSIGN_OR_RETURN(Tensor a, LessZeros(c, 0, lhs));
  HR_ASSIGN_OR_RETURN(Tensor b, LessZeros(c, 1, rhs));
  const int64_t rows = out.dim(0), columns = out.dim(1);
  HR_RETURN_IF_ERROR(Gemm(
      DType::kInt32, GemmDims::Dense(rows, columns, a.dim(1), false, false),
      a.raw(), b.raw(), out.raw()));
  int32_t* sums = LevelsOut<int32_t>(c, 0);
  // Column by column: the factor is the column's.
  for (int64_t j = 0; j < columns; ++j) {
    HR_ASSIGN_OR_RETURN(FixedFactor f,
                        FixedFactor::Make(static_cast<double>(lhs.scale(0)) *
                                          rhs.scale_of(j) / to.scale_of(j)));
    for (int64_t i = j; i < rows * columns; i += columns) {
      sums[i] = bounds.Cut(int64_t{f(sums[i])} + to.zero_of(j));
    }
  }
  return OkStatus();
}

// A product with floats, whose rows get levels of their own ranges.
Status HybridDotShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  if (a.known_rank() && a.rank() != 2) {
    return InvalidArgument("lhs rank must be 2, but given lhs shape ", a);
  }
  if (b.known_rank() && b.rank() != 2) {
    return InvalidArgument("rhs rank must be 2, but given rhs shape ", b);
  }
  const int64_t rows = a.known_rank() ? a[0] : Shape::kUnknown;
  const int64_t columns = b.known_rank() ? b[1] : Shape::kUnknown;
  if (a.known_rank() && b.known_rank() && a[1] >= 0 && b[0] >= 0 &&
      a[1] != b[0]) {
    return InvalidArgument("lhs.dim_size(1) and rhs.dim_size(0) must be equal",
                           ", but given lhs shape ", a, " and rhs shape ", b);
  }
  const int64_t axis = c.op().int_attr("rhs_quantization_axis");
  if (axis != -1 && axis != 1) {
    return InvalidArgument("rhs_quantization_axis Attr must be 1 (per-channel)",
                           " or -1 (per-tensor).");
  }
  HR_RETURN_IF_ERROR(CheckUniform(c, "rhs_", b, 2));
  c.set_output(0, Shape{rows, columns});
  return OkStatus();
}

Status HybridDot(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckScales(c, "rhs", 2));
  const Tensor& out = c.output(0);
  if (out.num_elements() == 0) return OkStatus();
  const UniformParams rhs(c, "rhs_", c.input(1).shape(), 2);
  const int64_t rows = out.dim(0), columns = out.dim(1);
  const int64_t inner = c.input(0).dim(1);
  HR_ASSIGN_OR_RETURN(Tensor levels,
                      c.Temporary(DType::kInt32, c.input(0).shape()));
  std::vector<float> scales;
  for (int64_t i = 0; i < rows; ++i) {
    const float* x = c.in<float>(0) + i * inner;
    const OwnLevels own(x, inner);
    scales.push_back(own.scale());
    std::transform(x, x + inner, levels.data<int32_t>() + i * inner, own);
  }
  HR_ASSIGN_OR_RETURN(Tensor b, LessZeros(c, 1, rhs));
  HR_ASSIGN_OR_RETURN(Tensor sums, c.Temporary(DType::kInt32, out.shape()));
  HR_RETURN_IF_ERROR(Gemm(DType::kInt32,
                          GemmDims::Dense(rows, columns, inner, false, false),
                          levels.raw(), b.raw(), sums.raw()));
  for (int64_t i = 0; i < rows * columns; ++i) {
    const float step = scales[i / columns] * rhs.scale_of(i % columns);
    c.out<float>(0)[i] = static_cast<float>(sums.data<int32_t>()[i]) * step;
  }
  return OkStatus();
}

HR_OP(UniformQuantizedDotHybrid)
    .Input("lhs: Tlhs")
    .Input("rhs: Trhs")
    .Input("rhs_scales: float")
    .Input("rhs_zero_points: int32")
    .Output("output: Tout")
    .Attr("Tlhs: {float}")
    .Attr("Trhs: {qint8}")
    .Attr("Tout: {float}")
    .Attr("rhs_quantization_axis: int = -1")
    .Attr("rhs_quantization_min_val: int")
    .Attr("rhs_quantization_max_val: int")
    .Doc("The product of a matrix of floats and a quantized one.")
    .Shape(HybridDotShape)
    .Cpu(Compute<HybridDot>);

// Operands, scales, zero points and their attributes.
OpBuilder Binary(const char* name) {
  OpBuilder op(name);
  const bool dot = std::string(name) == "UniformQuantizedDot";
  op.Input(dot ? "lhs: Tin" : "lhs: T").Input(dot ? "rhs: Tin" : "rhs: T");
  op.Input("lhs_scales: float")
      .Input("lhs_zero_points: int32")
      .Input("rhs_scales: float")
      .Input("rhs_zero_points: int32")
      .Input("output_scales: float")
      .Input("output_zero_points: int32")
      .Output(dot ? "output: Tout" : "output: T");
  if (dot) op.Attr("Tin: {qint8}").Attr("Tout: {qint32}");
  op.Attr("lhs_quantization_axis: int = -1")
      .Attr("lhs_quantization_min_val: int")
      .Attr("lhs_quantization_max_val: int")
      .Attr("rhs_quantization_axis: int = -1")
      .Attr("rhs_quantization_min_val: int")
      .Attr("rhs_quantization_max_val: int")
      .Attr("output_quantization_axis: int = -1")
      .Attr("output_quantization_min_val: int")
      .Attr("output_quantization_max_val: int");
  if (!dot) op.Attr("T: {qint32}");
  return op;
}

struct UniformRegistrations {
  UniformRegistrations() {
    Binary("UniformQuantizedAdd")
        .Doc("lhs + rhs of uniformly quantized tensors.")
        .Shape(UniformAddShape)
        .Cpu(Compute<UniformAdd>)
        .Register();
    Binary("UniformQuantizedDot")
        .Doc("The product of uniformly quantized matrices.")
        .Shape(UniformDotShape)
        .Cpu(Compute<UniformDot>)
        .Register();
  }
};
const UniformRegistrations uniform_registrations;

HR_OP(UniformQuantizedClipByValue)
    .Input("operand: T")
    .Input("min: T")
    .Input("max: T")
    .Input("scales: float")
    .Input("zero_points: int32")
    .Output("output: T")
    .Attr("T: {qint32}")
    .Attr("quantization_axis: int = -1")
    .Attr("quantization_min_val: int")
    .Attr("quantization_max_val: int")
    .Doc("The operand cut at levels, one pair for all or one a channel.")
    .Shape(UniformClipShape)
    .Cpu(Compute<UniformClip>);

}  // namespace
}  // namespace headrace
