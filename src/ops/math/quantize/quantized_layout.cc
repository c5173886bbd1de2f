// QuantizedConcat and QuantizedReshape.
#include <algorithm>

#include "ops/array/join/concat.h"
#include "ops/array/layout/reshape.h"
#include "ops/math/quantize/quantized.h"

namespace headrace {
namespace {

int NumParts(const ResolvedOp& op) { return (op.num_inputs() - 1) / 3; }

Status QuantizedConcatShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 0) {
    return InvalidArgument(
        "Concat dim tensor should be a scalar integer, but got shape ",
        c.input(0));
  }
  const int n = NumParts(c.op());
  HR_RETURN_IF_ERROR(ConcatShape(c, 1, n, 0));
  // Unlike Concat it does not count from the end.
  bool known;
  int64_t axis;
  HR_RETURN_IF_ERROR(c.IntValue(0, &known, &axis));
  if (known && axis < 0) {
    return InvalidArgument(
        "ConcatOp : Expected concatenating dimensions in the range [0, ",
        c.output(0).rank(), "), but got ", axis);
  }
  for (int i = 1 + n; i < c.num_inputs(); ++i) {
    if (c.input(i).fully_known() && c.input(i).num_elements() != 1) {
      return InvalidArgument("a range must be a scalar, but has shape ",
                             c.input(i));
    }
  }
  SetRangeOutputs(c);
  return OkStatus();
}

template <typename I>
Status QuantizedConcat(KernelContext& c) {
  const int n = NumParts(c.op());
  // The range contains 0, as upstream.
  float low = 0, high = *c.in<float>(1 + 2 * n);
  for (int k = 0; k < n; ++k) {
    low = std::min(low, *c.in<float>(1 + n + k));
    high = std::max(high, *c.in<float>(1 + 2 * n + k));
  }
  // Signed levels lie on both sides of 0 alike.
  if (std::is_signed_v<I>) {
    high = std::max(high, -low);
    low = -high;
  }
  SetRange(c, low, high);
  const EvenLevels<I> to(low, high);
  const int64_t axis = c.input(0).IntAt(0);
  const Shape& out = c.output(0).shape();
  const int64_t before = out.Product(0, static_cast<int>(axis));
  const int64_t row = out.Product(static_cast<int>(axis), out.rank());
  I* first = LevelsOut<I>(c, 0);
  for (int k = 0; k < n; ++k) {
    const float min = *c.in<float>(1 + n + k);
    const float max = *c.in<float>(1 + 2 * n + k);
    // Parts of the result's own range are copied: requantizing could move a
    // level.
    const bool same = min == low && max == high;
    const EvenLevels<I> from(min, max);
    const Shape& shape = c.input(1 + k).shape();
    const int64_t run = shape.Product(static_cast<int>(axis), shape.rank());
    const I* x = LevelsIn<I>(c, 1 + k);
    for (int64_t r = 0; r < before; ++r, x += run) {
      std::transform(x, x + run, first + r * row, [&](I v) {
        return same ? v : to.ToLevel(from.ToFloat(v));
      });
    }
    first += run;
  }
  return OkStatus();
}

ComputeFn PickConcat(const ResolvedOp& op) {
  const DType type = op.type_attr("T");
  return type == DType::kQuint8   ? QuantizedConcat<uint8_t>
         : type == DType::kQint32 ? QuantizedConcat<int32_t>
                                  : nullptr;
}

Status QuantizedReshapeShape(ShapeContext& c) {
  for (int i = 2; i < 4; ++i) {
    const Shape& s = c.input(i);
    if (!s.fully_known() || (s.rank() < 2 && s.num_elements() == 1)) continue;
    return InvalidArgument(c.op().def().inputs[i].name,
                           " must be a scalar or a vector of 1 element");
  }
  HR_RETURN_IF_ERROR(ReshapeRule(c));
  SetRangeOutputs(c);
  return OkStatus();
}

Status QuantizedReshape(KernelContext& c) {
  HR_RETURN_IF_ERROR(RunReshape(c));
  c.set_output(1, c.input(2).WithShape(Shape()));
  c.set_output(2, c.input(3).WithShape(Shape()));
  return OkStatus();
}

HR_OP(QuantizedConcat)
    .Input("concat_dim: int32")
    .Input("values: N * T")
    .Input("input_mins: N * float")
    .Input("input_maxes: N * float")
    .Output("output: T")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Doc("Joins quantized tensors, whose range becomes one.")
    .Shape(QuantizedConcatShape)
    .Cpu(ComputeFor<PickConcat>);
HR_OP(QuantizedReshape)
    .Input("tensor: T")
    .Input("shape: Tshape")
    .Input("input_min: float")
    .Input("input_max: float")
    .Output("output: T")
    .Output("output_min: float")
    .Output("output_max: float")
    .Attr("T: type")
    .Attr("Tshape: {int32, int64} = DT_INT32")
    .Doc("The same levels in another shape.")
    .Shape(QuantizedReshapeShape)
    .Cpu(ComputeOwn<QuantizedReshape>);

}  // namespace
}  // namespace headrace
