#include "op/op.h"
#include "op/vectorize.h"
#include "ops/array/block_copy.h"

namespace headrace {
namespace {

Status RollRule(ShapeContext& c) {
  const Shape &in = c.input(0), &shift = c.input(1), &axis = c.input(2);
  if (in.known_rank() && in.rank() < 1) {
    return InvalidArgument("input must be 1-D or higher");
  }
  if (shift.known_rank() && shift.rank() > 1) {
    return InvalidArgument("shift must be a scalar or a 1-D vector. Found: ",
                           shift);
  }
  if (axis.known_rank() && axis.rank() > 1) {
    return InvalidArgument("axis must be a scalar or a 1-D vector. Found: ",
                           axis);
  }
  if (!shift.CompatibleWith(axis)) {
    return InvalidArgument("shift and axis must have the same size");
  }
  c.set_output(0, in);
  return OkStatus();
}

// One axis: the end of `in` comes first in `out`.
void RollAxis(const Tensor& in, Tensor& out, int axis, int64_t shift) {
  const int64_t before = in.shape().Product(0, axis);
  const int64_t run = in.shape().Product(axis + 1, in.rank());
  const int64_t n = in.dim(axis), row = n * run;
  // Two copies: what is rolled over the end, and the rest.
  CopyBlock(in.dtype(), At(in, (n - shift) * run), out.raw(),
            {{before, row, row}, {shift * run, 1, 1}});
  CopyBlock(in.dtype(), in.raw(), At(out, shift * run),
            {{before, row, row}, {(n - shift) * run, 1, 1}});
}

Status Roll(KernelContext& c) {
  const Tensor &in = c.input(0), &shifts = c.input(1), &axes = c.input(2);
  const int rank = in.rank();
  absl::InlinedVector<int64_t, 8> shift(rank, 0);
  for (int64_t i = 0; i < shifts.num_elements(); ++i) {
    int64_t axis = axes.IntAt(i);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("axis ", axis, " is out of range");
    }
    // Guards the remainder for an axis of no elements.
    const int64_t n = std::max<int64_t>(in.dim(static_cast<int>(axis)), 1);
    // Shifts along an axis named twice add up; each is reduced first so that
    // the sum cannot overflow.
    shift[axis] = ((shift[axis] + shifts.IntAt(i) % n) % n + n) % n;
  }
  if (in.num_elements() == 0) return OkStatus();
  // Axis by axis, so that the last one writes the output.
  Tensor& out = c.output(0);
  Tensor from = in;
  int left = 0;
  for (int64_t s : shift) left += s != 0;
  if (left == 0) {
    CopyElements(in, out);
    return OkStatus();
  }
  for (int d = 0; d < rank; ++d) {
    if (shift[d] == 0) continue;
    if (--left == 0) {
      RollAxis(from, out, d, shift[d]);
      break;
    }
    HR_ASSIGN_OR_RETURN(Tensor to, c.Temporary(in.dtype(), in.shape()));
    RollAxis(from, to, d, shift[d]);
    from = std::move(to);
  }
  return OkStatus();
}

Status RollGradient(GradientContext& g) {
  Value back = g("Neg", {g.input(1)});
  g.set(0, g("Roll", {g.grad(), back, g.input(2)}));
  return g.status();
}

Status VectorizeRoll(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(1));
  return c.SetAll(c.Again({c.input(0), c.input(1), c.ShiftAxes(c.input(2))}));
}

HR_OP(Roll)
    .Input("input: T")
    .Input("shift: Tshift")
    .Input("axis: Taxis")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Tshift: {int32, int64}")
    .Attr("Taxis: {int32, int64}")
    .Doc("The input moved along axes; what leaves one end enters the other.")
    .Shape(RollRule)
    .Gradient(RollGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeRoll)
    .Cpu(Compute<Roll>);

}  // namespace
}  // namespace headrace
