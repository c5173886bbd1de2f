#include "absl/strings/str_join.h"
#include "op/op.h"

namespace headrace {
namespace {

Status ConcatOffsetRule(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) c.set_output(i - 1, c.input(i));
  return OkStatus();
}

// The rule lets any rank pass, as upstream's does: it is an error of the run.
Status CheckRanks(const KernelContext& c) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument(
        "Concat dim tensor should be a scalar integer, but got shape ",
        c.input(0).shape());
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() != 1) {
      return InvalidArgument("input ", i, " should be a vector, but got shape ",
                             c.input(i).shape());
    }
  }
  return OkStatus();
}

std::string ShapeText(const Tensor& t) {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < t.num_elements(); ++i) v.push_back(t.IntAt(i));
  return absl::StrCat("[", absl::StrJoin(v, " "), "]");
}

Status ConcatOffset(KernelContext& c) {
  HR_RETURN_IF_ERROR(CheckRanks(c));
  const int64_t rank = c.input(1).num_elements();
  const int64_t given = c.input(0).IntAt(0);
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) {
    return InvalidArgument("Concat dim is out of range: ", given, " vs. ",
                           rank);
  }
  int64_t offset = 0;
  for (int i = 0; i < c.num_outputs(); ++i) {
    const Tensor& shape = c.input(1 + i);
    if (shape.num_elements() != rank) {
      return InvalidArgument("input ", i, " should contain ", rank,
                             " elements, but got ", shape.num_elements());
    }
    Tensor& out = c.output(i);
    // Every offset but the axis' is 0.
    FillZero(out);
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis && shape.IntAt(d) != c.input(1).IntAt(d)) {
        return InvalidArgument("All dimensions except ", axis,
                               " must match. Input ", i, " has shape ",
                               ShapeText(shape),
                               " and doesn't match input 0 with shape ",
                               ShapeText(c.input(1)), ".");
      }
    }
    if (out.dtype() == DType::kInt32) {
      out.data<int32_t>()[axis] = static_cast<int32_t>(offset);
    } else {
      out.data<int64_t>()[axis] = offset;
    }
    // The sizes are numbers of the caller's and may be anything.
    if (__builtin_add_overflow(offset, shape.IntAt(axis), &offset)) {
      return InvalidArgument("ConcatOffset: offsets are too large");
    }
  }
  return OkStatus();
}

HR_OP(ConcatOffset)
    .Input("concat_dim: int32")
    .Input("shape: N * shape_type")
    .Output("offset: N * shape_type")
    .Attr("N: int >= 2")
    .Attr("shape_type: {int32, int64} = DT_INT32")
    .Doc("Where each part begins in a concatenation of the given shapes.")
    .Shape(ConcatOffsetRule)
    .NoGradient()
    .Cpu(Compute<ConcatOffset>);

}  // namespace
}  // namespace headrace
