// QuantizedAdd, QuantizedMul and QuantizedBiasAdd: levels of eight bits to
// levels of 32.
#include <algorithm>
#include <array>

#include "ops/math/elementwise/elementwise.h"
#include "ops/math/loops/wrapping.h"
#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

// What each level of 8 bits becomes.
using LevelTable = std::array<int32_t, 256>;

StatusOr<Tensor> LookUp(const KernelContext& c, int i,
                        const LevelTable& table) {
  const Tensor& in = c.input(i);
  HR_ASSIGN_OR_RETURN(Tensor out, c.Temporary(DType::kInt32, in.shape()));
  const uint8_t* from = LevelsIn<uint8_t>(c, i);
  // 256 levels: each is worked out once, in LevelTable, and looked up here.
  std::transform(from, from + in.num_elements(), out.data<int32_t>(),
                 [&](uint8_t level) { return table[level]; });
  return out;
}

template <auto F>
Status Combine(const KernelContext& c, const LevelTable& x,
               const LevelTable& y) {
  if (c.output(0).num_elements() == 0) return OkStatus();
  HR_ASSIGN_OR_RETURN(Tensor a, LookUp(c, 0, x));
  HR_ASSIGN_OR_RETURN(Tensor b, LookUp(c, 1, y));
  ComputeBinary(&ScalarBinaryLoop<F, int32_t>, 1, a, b, c.output(0));
  return OkStatus();
}

// The bound of a sum's range, symmetric, with room for `bits` more bits.
float SumBound(const KernelContext& c, int bits) {
  // One range for both operands, wide enough for either.
  const float high = std::max(*c.in<float>(3), *c.in<float>(5));
  const float low = std::min(*c.in<float>(2), *c.in<float>(4));
  // The sum has 32 bits: the operands' 8 and so many more below the range, so
  // that small differences keep their levels.
  return std::max(high, -low) * static_cast<float>(1 << bits);
}

// Levels over the range in inputs `at` and `at` + 1 as levels over [-bound,
// bound]. A tensor's are a line through those of 0 and 1, whose slope is
// rounded; a single number is exact.
LevelTable AsTerms(const KernelContext& c, int at, float bound, bool exact) {
  const PreciseLevels<uint8_t> from(*c.in<float>(at), *c.in<float>(at + 1));
  const PreciseLevels<int32_t> to(-bound, bound);
  // Beyond int32's levels, perhaps: the line is cut only where it is used.
  const int64_t zero = to.Unclamped(from.ToFloat(0));
  const int64_t slope = to.Unclamped(from.ToFloat(1)) - zero;
  LevelTable table;
  for (int i = 0; i < 256; ++i) {
    // Upstream converts a single number on its own, and whole tensors by the
    // line.
    table[i] = exact ? to.ToLevel(from.ToFloat(static_cast<uint8_t>(i)))
                     : static_cast<int32_t>(zero + i * slope);
  }
  return table;
}

Status QuantizedAdd(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 2, "x"));
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 4, "y"));
  // Upstream's: 2^14 times the operands' range leaves sums room.
  const float bound = SumBound(c, 14);
  SetRange(c, -bound, bound);
  const bool one_x = c.input(0).num_elements() == 1;
  // Upstream looks at x first: of two single numbers only x is exact.
  const bool one_y = !one_x && c.input(1).num_elements() == 1;
  // Wraps, as upstream's.
  constexpr auto plus = [](int32_t a, int32_t b) { return Plus(a, b); };
  return Combine<plus>(c, AsTerms(c, 2, bound, one_x),
                       AsTerms(c, 4, bound, one_y));
}

LevelTable AsFactors(const KernelContext& c, int at) {
  const int32_t zero = ZeroLevel<uint8_t>(c, at);
  LevelTable table;
  for (int i = 0; i < 256; ++i) table[i] = Minus(i, zero);
  return table;
}

Status QuantizedMul(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 2, "x"));
  HR_RETURN_IF_ERROR(CheckWidthOfRange(c, 4, "y"));
  SetProductRange<uint8_t, uint8_t>(c, 2, 4);
  constexpr auto times = [](int32_t a, int32_t b) { return Times(a, b); };
  return Combine<times>(c, AsFactors(c, 2), AsFactors(c, 4));
}

template <typename I>
Status QuantizedBiasAdd(KernelContext& c) {
  // Upstream's number for this op.
  const float bound = SumBound(c, 17);
  SetRange(c, -bound, bound);
  const EvenLevels<I> from(*c.in<float>(2), *c.in<float>(3));
  const EvenLevels<I> bias_from(*c.in<float>(4), *c.in<float>(5));
  const EvenLevels<int32_t> to(-bound, bound);
  // Zero and zero must make zero, which may not be level 0.
  const int32_t zero = PreciseLevels<int32_t>(-bound, bound).ToLevel(0);
  const int64_t n = c.input(0).num_elements(), depth = c.input(1).dim(0);
  const I *x = LevelsIn<I>(c, 0), *bias = LevelsIn<I>(c, 1);
  int32_t* out = LevelsOut<int32_t>(c, 0);
  for (int64_t d = 0; d < depth; ++d) {
    const int32_t add = Plus(to.ToLevel(bias_from.ToFloat(bias[d])), zero);
    // Channel by channel: each bias is converted once.
    for (int64_t i = d; i < n; i += depth) {
      out[i] = Plus(to.ToLevel(from.ToFloat(x[i])), add);
    }
  }
  return OkStatus();
}

Status QuantizedBroadcastShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 2, 6));
  HR_RETURN_IF_ERROR(BroadcastShape(c));
  SetRangeOutputs(c);
  return OkStatus();
}

Status QuantizedBiasShape(ShapeContext& c) {
  const Shape &x = c.input(0), &bias = c.input(1);
  if (x.known_rank() && x.rank() < 2) {
    return InvalidArgument("Input tensor must be at least 2D: ", x);
  }
  if (bias.known_rank() && bias.rank() != 1) {
    return InvalidArgument("Biases must be 1D: ", bias);
  }
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 2, 6));
  Shape out = x;
  if (x.known_rank() && bias.known_rank()) {
    const int last = x.rank() - 1;
    if (x[last] >= 0 && bias[0] >= 0 && x[last] != bias[0]) {
      return InvalidArgument(
          "Must provide as many biases as the last dimension of the input "
          "tensor: ",
          bias, " vs. ", x);
    }
    // -1 stands for unknown.
    out.set_dim(last, std::max(x[last], bias[0]));
  }
  c.set_output(0, std::move(out));
  SetRangeOutputs(c);
  return OkStatus();
}

template <ComputeFn F>
ComputeFn PickBytes(const ResolvedOp& op) {
  const bool known = op.type_attr("T1") == DType::kQuint8 &&
                     op.type_attr("T2") == DType::kQuint8 &&
                     op.type_attr("Toutput") == DType::kQint32;
  return known ? F : nullptr;
}
ComputeFn PickBiasAdd(const ResolvedOp& op) {
  const DType type = op.type_attr("T1");
  if (op.type_attr("T2") != type ||
      op.type_attr("out_type") != DType::kQint32) {
    return nullptr;
  }
  return type == DType::kQuint8  ? QuantizedBiasAdd<uint8_t>
         : type == DType::kQint8 ? QuantizedBiasAdd<int8_t>
                                 : nullptr;
}

OpBuilder QuantizedBinaryOp(const char* name, const char* doc,
                            KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("x: T1")
      .Input("y: T2")
      .Input("min_x: float")
      .Input("max_x: float")
      .Input("min_y: float")
      .Input("max_y: float")
      .Output("z: Toutput")
      .Output("min_z: float")
      .Output("max_z: float")
      .Attr("T1: quantizedtype")
      .Attr("T2: quantizedtype")
      .Attr("Toutput: quantizedtype = DT_QINT32")
      .Doc(doc)
      .Shape(QuantizedBroadcastShape)
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kQuantizedSums[] = {
    QuantizedBinaryOp("QuantizedAdd",
                      "x + y of quantized tensors, and its range.",
                      ComputeFor<PickBytes<QuantizedAdd>>),
    QuantizedBinaryOp("QuantizedMul",
                      "x * y of quantized tensors, and its range.",
                      ComputeFor<PickBytes<QuantizedMul>>),
};

HR_OP(QuantizedBiasAdd)
    .Input("input: T1")
    .Input("bias: T2")
    .Input("min_input: float")
    .Input("max_input: float")
    .Input("min_bias: float")
    .Input("max_bias: float")
    .Output("output: out_type")
    .Output("min_out: float")
    .Output("max_out: float")
    .Attr("T1: quantizedtype")
    .Attr("T2: quantizedtype")
    .Attr("out_type: quantizedtype")
    .Doc("A quantized tensor plus a vector along its last dimension.")
    .Shape(QuantizedBiasShape)
    .Cpu(ComputeFor<PickBiasAdd>);

}  // namespace
}  // namespace headrace
