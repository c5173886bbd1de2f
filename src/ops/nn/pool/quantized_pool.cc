// QuantizedAvgPool and QuantizedMaxPool: the range stays as it is.
#include <algorithm>

#include "ops/math/quantize/quantized.h"
#include "ops/nn/pool/pool_op.h"

namespace headrace {
namespace {

Status QuantizedPoolShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRangesAreScalars(c, 1, 3));
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 4));
  HR_RETURN_IF_ERROR(PooledShape(c));
  SetRangeOutputs(c);
  return OkStatus();
}

template <typename I>
Status QuantizedMaxPool(KernelContext& c) {
  // A maximum or mean of numbers lies within their range.
  SetRange(c, *c.in<float>(1), *c.in<float>(2));
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  return MaxPoolForward(DTypeOf<I>, r.geometry(), c.input(0).raw(),
                        c.output(0).raw());
}

// The sums need more bits than the levels have.
template <typename I>
Status QuantizedAvgPool(KernelContext& c) {
  SetRange(c, *c.in<float>(1), *c.in<float>(2));
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  const Tensor &in = c.input(0), &out = c.output(0);
  HR_ASSIGN_OR_RETURN(Tensor wide, c.Temporary(DType::kInt32, in.shape()));
  HR_ASSIGN_OR_RETURN(Tensor means, c.Temporary(DType::kInt32, out.shape()));
  std::copy_n(LevelsIn<I>(c, 0), in.num_elements(), wide.data<int32_t>());
  HR_RETURN_IF_ERROR(
      AvgPoolForward(DType::kInt32, r.geometry(), wide.raw(), means.raw()));
  const int32_t* from = means.data<int32_t>();
  std::transform(from, from + out.num_elements(), LevelsOut<I>(c, 0),
                 [](int32_t v) { return static_cast<I>(v); });
  return OkStatus();
}

template <ComputeFn U, ComputeFn S>
ComputeFn PickPool(const ResolvedOp& op) {
  const DType type = op.type_attr("T");
  return type == DType::kQuint8 ? U : type == DType::kQint8 ? S : nullptr;
}

OpBuilder QuantizedPoolOp(const char* name, const char* doc,
                          KernelFactory kernel) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("min_input: float")
      .Input("max_input: float")
      .Output("output: T")
      .Output("min_output: float")
      .Output("max_output: float")
      .Attr("T: quantizedtype")
      .Attr("ksize: list(int)")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Doc(doc)
      .Shape(QuantizedPoolShape)
      .Cpu(kernel);
  return b;
}
[[maybe_unused]] const OpRegistrar kQuantizedPools[] = {
    QuantizedPoolOp(
        "QuantizedAvgPool", "Means over windows, rounded towards 0.",
        ComputeFor<
            PickPool<QuantizedAvgPool<uint8_t>, QuantizedAvgPool<int8_t>>>),
    QuantizedPoolOp(
        "QuantizedMaxPool", "Maxima over windows.",
        ComputeFor<
            PickPool<QuantizedMaxPool<uint8_t>, QuantizedMaxPool<int8_t>>>),
};

}  // namespace
}  // namespace headrace
