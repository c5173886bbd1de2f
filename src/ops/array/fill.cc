// Tensors of one value.
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status FillRule(ShapeContext& c) {
  const Tensor* dims = c.value(0);
  if (c.input(0).known_rank() && c.input(0).rank() > 1) {
    return c.Refuse(RankIsNot(1, c.input(0).rank()),
                    InvalidArgument("dims must represent a vector, got shape ",
                                    c.input(0)));
  }
  if (c.input(1).fully_known() && c.input(1).num_elements() != 1) {
    return c.Refuse(c.input(0).rank() == 0 ? RankIsNot(1, 0)
                                           : RankIsNot(0, c.input(1).rank()),
                    InvalidArgument("value must represent a scalar, got shape ",
                                    c.input(1)));
  }
  if (dims != nullptr) {
    for (int64_t i = 0; i < dims->num_elements(); ++i) {
      if (dims->IntAt(i) < 0) {
        return c.Refuse(
            {"Fill dimensions must be >= 0", 0, 1},
            InvalidArgument("Dimension ", dims->IntAt(i), " must be >= 0"));
      }
    }
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(0));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status Fill(KernelContext& c) {
  Tensor& out = c.output(0);
  FillRun(out.dtype(), out.raw(), c.input(1).raw(), out.num_elements());
  return OkStatus();
}

Status FillGradient(GradientContext& g) {
  Value dy = g.grad();
  Value axes = g("Range", {g.Int32(0), g("Rank", {dy}), g.Int32(1)});
  // Every element of the result is the value: its gradient is the sum over all.
  g.set(1, g("Sum", {dy, axes}));
  return g.status();
}

Status VectorizeFill(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(0));
  const Shape dims = c.row_shape(0);
  if (dims.rank() != 1 || dims[0] < 0) {
    return c.Refuse("the rank of the result is not known.");
  }
  Value sizes = c.input(0);
  if (sizes.dtype() != DType::kInt32) {
    sizes = c("Cast", {sizes}, {{"DstT", DType::kInt32}});
  }
  Value values = c.PadRank(c.input(1), 0, static_cast<int>(dims[0]));
  return c.Set(c("BroadcastTo", {values, c.Join({c.CountSizes(), sizes})}));
}

HR_OP(Fill)
    .Traits({OpTrait::kMovesNumbers})
    .Input("dims: index_type")
    .Input("value: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("index_type: {int32, int64} = DT_INT32")
    .Doc("A tensor of the given shape, each element being `value`.")
    .Shape(FillRule)
    .Gradient(FillGradient)
    .GradientSkips({0, 1}, {0})
    .Vectorize(VectorizeFill)
    .Cpu(Compute<Fill>);

Status One(KernelContext& c) {
  Tensor& out = c.output(0);
  HR_ASSIGN_OR_RETURN(Tensor one, ScalarOf(out.dtype(), 1));
  FillRun(out.dtype(), out.raw(), one.raw(), out.num_elements());
  return OkStatus();
}

HR_OP(OnesLike)
    .Input("x: T")
    .Output("y: T")
    .Attr(
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, "
        "int32, uint32, int64, uint64, complex64, complex128, bool}")
    .Doc("Ones in the shape of x.")
    .Shape(UnchangedShape)
    .NoGradient()
    .Vectorize(VectorizeBroadcast)
    .Cpu(Compute<One>);

Status EmptyRule(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return InvalidArgument("shape must be a vector of int32, got shape ",
                           c.input(0));
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(0));
  c.set_output(0, std::move(out));
  return OkStatus();
}
Status Empty(KernelContext& c) {
  const Tensor& dims = c.input(0);
  for (int64_t i = 0; i < dims.num_elements(); ++i) {
    if (dims.IntAt(i) < 0) {
      return InvalidArgument("Dimension ", dims.IntAt(i), " must be >= 0");
    }
  }
  if (c.op().bool_attr("init")) FillZero(c.output(0));
  return OkStatus();
}
HR_OP(Empty)
    .Input("shape: int32")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("init: bool = false")
    .Stateful()
    .Doc("A tensor whose elements mean nothing yet, or zeros with `init`.")
    .Shape(EmptyRule)
    .Cpu(Compute<Empty>);

}  // namespace
}  // namespace headrace
