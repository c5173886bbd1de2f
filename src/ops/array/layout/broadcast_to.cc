#include <algorithm>

#include "op/op.h"
#include "op/passes/simplify.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

// Graphs show what is known of the shape, whatever is wrong with it.
Status WrongTarget(ShapeContext& c, ShapeRefusal in_graph, Status rule) {
  in_graph.partial_shapes = 2;
  return c.Refuse(std::move(in_graph), std::move(rule));
}

Status BroadcastToRule(ShapeContext& c) {
  const Shape &in = c.input(0), &shape = c.input(1);
  if (shape.known_rank() && shape.rank() != 1) {
    return c.Refuse(
        RankIsNot(1, shape.rank()),
        InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                        shape));
  }
  // A negative size means "unknown" in a shape, so ShapeValue would take -1 for
  // that.
  if (const Tensor* dims = c.value(1)) {
    for (int64_t i = 0; i < dims->num_elements(); ++i) {
      if (dims->IntAt(i) < 0) {
        const StatusOr<Shape> to = c.ShapeValue(1);
        return WrongTarget(
            c, to.ok() ? NotBroadcast(in, *to) : ShapeRefusal{},
            InvalidArgument("Dimension ", dims->IntAt(i), " must be >= 0"));
      }
    }
  }
  HR_ASSIGN_OR_RETURN(Shape out, c.ShapeValue(1));
  if (!in.known_rank() || !out.known_rank()) {
    c.set_output(0, std::move(out));
    return OkStatus();
  }
  const int extra = out.rank() - in.rank();
  if (extra < 0) {
    return c.Refuse(
        {absl::StrCat("Shape must be at most rank ", out.rank(),
                      " but is rank ", in.rank())},
        InvalidArgument("Rank of input (", in.rank(),
                        ") must be no greater than rank of output shape (",
                        out.rank(), ")."));
  }
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t want = out[extra + i];
    // Sizes of 1 and unknown ones fit any request.
    if (in[i] == 1 || in[i] < 0 || in[i] == want) continue;
    if (want == 1) {
      return WrongTarget(c, NotBroadcast(in, out),
                         InvalidArgument("Unable to broadcast tensor of shape ",
                                         in, " to tensor of shape ", out));
    }
    if (want >= 0) {
      return WrongTarget(
          c, NotBroadcast(in, out),
          InvalidArgument("Incompatible shapes: ", in, " vs. ", out));
    }
    // The request does not tell its size here, but an input size other than 1
    // does.
    out.set_dim(extra + i, in[i]);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status BroadcastTo(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  const auto from = RowMajorStrides(in.shape().dims());
  const auto to = RowMajorStrides(out.shape().dims());
  const int extra = out.rank() - in.rank();
  BlockDims dims;
  for (int i = 0; i < out.rank(); ++i) {
    // A stride of 0 reads the same elements again.
    const bool repeats = i < extra || in.dim(i - extra) == 1;
    dims.push_back({out.dim(i), repeats ? 0 : from[i - extra], to[i]});
  }
  CopyBlock(in.dtype(), in.raw(), out.raw(), std::move(dims));
  return OkStatus();
}

Status BroadcastToGradient(GradientContext& g) {
  g.set(0, g.ReduceTo(g.grad(), g.input(0)));
  return g.status();
}

Status SkipIdleBroadcast(SimplifyContext& c) {
  // The shape input must be a constant: otherwise whoever makes it would no
  // longer run before the readers.
  if (c.keeps_shape(0) && c.value(1).has_buffer()) {
    c.Replace(0, c.input(0));
  }
  return c.status();
}

Status VectorizeBroadcastTo(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantShared(1));
  HR_RETURN_IF_ERROR(c.WantRank(0));
  const Shape sizes = c.row_shape(1);
  if (sizes.rank() != 1 || sizes[0] < 0) {
    return c.Refuse("the rank of the result is not known.");
  }
  Value x = c.PadRank(c.input(0), c.row_rank(0), static_cast<int>(sizes[0]));
  return c.SetAll(c.Again({x, c.WithCount(c.input(1))}));
}

HR_OP(BroadcastTo)
    .Input("input: T")
    .Input("shape: Tidx")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tidx: {int32, int64} = DT_INT32")
    .Doc("The input, repeated along dimensions of size 1 to fill `shape`.")
    .Role(OpRole::kBroadcastTo)
    .Simplify(SkipIdleBroadcast)
    .Shape(BroadcastToRule)
    .Gradient(BroadcastToGradient)
    .GradientSkips({1}, {0})
    .Vectorize(VectorizeBroadcastTo)
    .Cpu(Compute<BroadcastTo>);

Status BroadcastArgsRule(ShapeContext& c) {
  int64_t size = 0;
  for (int i = 0; i < 2; ++i) {
    const Shape& s = c.input(i);
    if (s.known_rank() && s.rank() != 1) {
      return InvalidArgument("In[", i, "] must be a vector.", s);
    }
    int64_t n = Shape::kUnknown;
    if (s.known_rank()) n = s[0];
    // The shorter shape is filled up with ones in front.
    size = size < 0 || n < 0 ? Shape::kUnknown : std::max(size, n);
  }
  c.set_output(0, Shape{size});
  return OkStatus();
}

Status BroadcastArgs(KernelContext& c) {
  Shape shapes[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& t = c.input(i);
    absl::InlinedVector<int64_t, 8> dims;
    for (int64_t k = 0; k < t.num_elements(); ++k) dims.push_back(t.IntAt(k));
    HR_ASSIGN_OR_RETURN(shapes[i], Shape::Make(dims));
  }
  HR_ASSIGN_OR_RETURN(Shape r, BroadcastShapes(shapes[0], shapes[1]));
  for (int i = 0; i < r.rank(); ++i) {
    if (c.output(0).dtype() == DType::kInt32) {
      c.out<int32_t>(0)[i] = static_cast<int32_t>(r[i]);
    } else {
      c.out<int64_t>(0)[i] = r[i];
    }
  }
  return OkStatus();
}

HR_OP(BroadcastArgs)
    .Input("s0: T")
    .Input("s1: T")
    .Output("r0: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Doc("The shape to which two shapes broadcast together.")
    .Shape(BroadcastArgsRule)
    .Cpu(Compute<BroadcastArgs>);

}  // namespace
}  // namespace headrace
