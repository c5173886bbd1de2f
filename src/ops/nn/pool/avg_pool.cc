// AvgPool, AvgPool3D and their gradients: the mean of what a window sees of
// its input, padding left out.
#include "absl/strings/match.h"
#include "op/float_ops.h"
#include "op/vectorize.h"
#include "ops/nn/pool/pool_op.h"

namespace headrace {
namespace {

Status RunAvgPool(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.input(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor x, r.In(c, 0));
  HR_ASSIGN_OR_RETURN(Tensor y, r.Out(c));
  HR_RETURN_IF_ERROR(AvgPoolForward(x.dtype(), r.geometry(), x.raw(), y.raw()));
  return r.Finish(c, y);
}

Status RunAvgPoolGrad(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(PoolRun r, PoolRun::Make(c, c.output(0).shape()));
  HR_ASSIGN_OR_RETURN(Tensor dy, r.In(c, 1));
  HR_ASSIGN_OR_RETURN(Tensor dx, r.Out(c));
  HR_RETURN_IF_ERROR(
      AvgPoolBackward(dy.dtype(), r.geometry(), dy.raw(), dx.raw()));
  return r.Finish(c, dx);
}

Status AvgPoolShape(ShapeContext& c) {
  PoolAttrs attrs;
  HR_RETURN_IF_ERROR(PoolAttrsFor(c, &attrs).status());
  if (attrs.channel_size != 1) {
    return Unimplemented("AvgPool over channels is not supported");
  }
  return PooledShape(c);
}

// Input 0 holds the unpooled shape; what arrives must be its pooled one.
Status AvgPoolGradShape(ShapeContext& c) {
  PoolAttrs attrs;
  HR_RETURN_IF_ERROR(PoolAttrsFor(c, &attrs).status());
  HR_ASSIGN_OR_RETURN(Shape x, c.ShapeValue(0));
  const int rank = attrs.window.spatial + 2;
  if (x.known_rank() && x.rank() != rank) {
    return InvalidArgument("out_backprop must be ", rank, "-dimensional");
  }
  HR_ASSIGN_OR_RETURN(Shape pooled, attrs.Output(x));
  if (!pooled.CompatibleWith(c.input(1))) {
    return InvalidArgument("Expected out_backprop shape to be ", pooled,
                           ", but got ", c.input(1));
  }
  c.set_output(0, x.known_rank() ? x : Shape::UnknownOfRank(rank));
  return OkStatus();
}

Status AvgPoolGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  g.set(0, g(Pools3D(g.op()) ? "AvgPool3DGrad" : "AvgPoolGrad",
             {g.ShapeOf(g.input(0)), d}, PoolAttrMap(g.op())));
  return g.status();
}

Status AvgPoolGradGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  // The mean is linear: the gradient of its gradient is the mean of what
  // arrives.
  g.set(1,
        g(Pools3D(g.op()) ? "AvgPool3D" : "AvgPool", {d}, PoolAttrMap(g.op())));
  return g.status();
}

// The images of all rows are one batch, whose size the first input holds.
Status VectorizeAvgPoolGrad(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(0));
  const Value& sizes = c.input(0);
  Value first =
      c("StridedSlice", {sizes, c.Int32s({0}), c.Int32s({1}), c.Int32s({1})});
  Value rest =
      c("StridedSlice", {sizes, c.Int32s({1}), c.Int32s({0}), c.Int32s({1})},
        {{"end_mask", 1}});
  Value all =
      c("ConcatV2", {c("Mul", {first, c.CountSizes()}), rest, c.Int32(0)});
  ValueList y = c.Again({all, c.Fold(c.input(1))});
  HR_RETURN_IF_ERROR(c.status());
  return c.Set(c.Unfold(y[0], c.input(1)));
}

constexpr char kTypes[] = "T: {half, bfloat16, float, double}";

struct AvgPoolRegistrations {
  AvgPoolRegistrations() {
    for (bool is_3d : {false, true}) {
      OpBuilder forward(is_3d ? "AvgPool3D" : "AvgPool");
      forward.Input(is_3d ? "input: T" : "value: T").Output("output: T");
      Sliding(forward, is_3d)
          .Doc("Means over sliding windows.")
          .Shape(AvgPoolShape)
          .Gradient(AvgPoolGradient)
          .GradientSkips({}, {0})
          .Vectorize(VectorizeFolded)
          .Cpu(Compute<RunAvgPool>)
          .Register();
      OpBuilder back(is_3d ? "AvgPool3DGrad" : "AvgPoolGrad");
      back.Input("orig_input_shape: int32").Input("grad: T");
      back.Output("output: T");
      Sliding(back, is_3d)
          .Doc("Gradient of the mean over sliding windows.")
          .Shape(AvgPoolGradShape)
          .Gradient(AvgPoolGradGradient)
          .GradientSkips({0, 1}, {0})
          .Vectorize(VectorizeAvgPoolGrad)
          .Cpu(Compute<RunAvgPoolGrad>)
          .Register();
    }
  }
  static OpBuilder& Sliding(OpBuilder& op, bool is_3d) {
    if (is_3d) {
      WithPool3D(op);
    } else {
      WithPool2D(op, false, kPoolFormats);
    }
    return op.Attr(kTypes);
  }
};
const AvgPoolRegistrations avg_pool_registrations;

// A sum for each element that a window sees, and back a quotient as well.
const FloatOps avg_pool_float_ops({"AvgPool"}, [](FloatOpsContext& c) {
  return c.Product("ksize") * c.output();
});
const FloatOps avg_pool_grad_float_ops({"AvgPoolGrad"}, [](FloatOpsContext& c) {
  return 2 * c.Product("ksize") * c.input(1);
});

}  // namespace
}  // namespace headrace
