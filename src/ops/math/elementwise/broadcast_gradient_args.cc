// Which axes the gradient of a broadcast op is summed over to come back.
#include "op/op.h"

namespace headrace {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

// The shapes that inputs 0 and 1 hold, and what they broadcast to.
struct Pair {
  Shape a, b, both;
};
StatusOr<Pair> ReadPair(const KernelContext& c) {
  Dims dims[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& t = c.input(i);
    if (t.rank() != 1) {
      return InvalidArgument("In[", i, "] must be a vector.", t.shape());
    }
    for (int64_t k = 0; k < t.num_elements(); ++k)
      dims[i].push_back(t.IntAt(k));
  }
  Pair pair;
  HR_ASSIGN_OR_RETURN(pair.a, Shape::Make(dims[0]));
  HR_ASSIGN_OR_RETURN(pair.b, Shape::Make(dims[1]));
  HR_ASSIGN_OR_RETURN(pair.both, BroadcastShapes(pair.a, pair.b));
  return pair;
}

Status SetVector(KernelContext& c, int output, const Dims& values) {
  HR_RETURN_IF_ERROR(
      c.Allocate(output, Shape{static_cast<int64_t>(values.size())}));
  if (c.op().type_attr("T") == DType::kInt32) {
    std::copy(values.begin(), values.end(), c.out<int32_t>(output));
  } else {
    std::copy(values.begin(), values.end(), c.out<int64_t>(output));
  }
  return OkStatus();
}

// The axes of a shape of rank `rank` along which `s` has one element or none;
// upstream names those too along which the other shape has one as well.
Dims SummedAxes(const Shape& s, int rank) {
  Dims axes;
  for (int i = 0; i < rank; ++i) {
    // Shapes are aligned at their ends; what is missing in front counts as 1.
    const int at = i - (rank - s.rank());
    if (at < 0 || s[at] == 1) axes.push_back(i);
  }
  return axes;
}

Status GradientArgs(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Pair p, ReadPair(c));
  Dims a, b;
  // Upstream's: equal shapes name no axes, not even those of size 1.
  if (p.a != p.b) {
    a = SummedAxes(p.a, p.both.rank());
    b = SummedAxes(p.b, p.both.rank());
  }
  HR_RETURN_IF_ERROR(SetVector(c, 0, a));
  return SetVector(c, 1, b);
}

Status GradientArgsShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  c.set_output(0, Shape{Shape::kUnknown});
  c.set_output(1, Shape{Shape::kUnknown});
  return OkStatus();
}
HR_OP(BroadcastGradientArgs)
    .Input("s0: T")
    .Input("s1: T")
    .Output("r0: T")
    .Output("r1: T")
    .Attr("T: {int32, int64} = DT_INT32")
    .Doc(
        "The axes that the gradient of an op on tensors of shapes s0 and s1 "
        "is summed over for each of them.")
    .Shape(GradientArgsShape)
    .NoGradient()
    .Cpu(ComputeOwn<GradientArgs>);
}  // namespace
}  // namespace headrace
