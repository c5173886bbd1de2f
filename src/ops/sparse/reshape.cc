#include <algorithm>

#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status ReshapeRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  const Shape &indices = c.input(0), &target = c.input(2);
  c.set_output(0, Shape{indices.known_rank() ? indices[0] : -1,
                        target.known_rank() ? target[0] : -1});
  c.set_output(1, target);
  return OkStatus();
}

// `wanted` with its one -1 filled in, for `total` elements.
StatusOr<Dims> Target(const Dims& wanted, int64_t total) {
  Dims out = wanted;
  int64_t known = 1;
  int missing = -1;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] == -1) {
      if (missing >= 0) {
        return InvalidArgument("only one output dimension may be -1, not both ",
                               missing, " and ", d);
      }
      missing = static_cast<int>(d);
    } else if (wanted[d] < 0) {
      return InvalidArgument("size ", d, " must be non-negative, not ",
                             wanted[d]);
    } else if (!MultiplyChecked(known, wanted[d], &known)) {
      return InvalidArgument("SparseReshape: new_shape [", JoinInts(wanted),
                             "] has too many elements");
    }
  }
  if (missing >= 0) {
    if (known == 0 && total != 0) {
      return InvalidArgument(
          "reshape cannot infer the missing input size for "
          "an empty tensor unless all specified input "
          "sizes are non-zero");
    }
    // Where both have no elements, 0 is as good as any size.
    out[missing] = known == 0 ? 0 : total / known;
    if (known != 0 && out[missing] * known != total) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", total,
                             " dense values, but the requested shape requires "
                             "a multiple of ",
                             known);
    }
  } else if (known != total) {
    return InvalidArgument("Input to reshape is a tensor with ", total,
                           " dense values, but the requested shape has ",
                           known);
  }
  return out;
}

Status Reshape(KernelContext& c) {
  const Tensor& indices = c.input(0);
  const Dims dims = IntsOf(c.input(1));
  if (indices.dim(1) != static_cast<int64_t>(dims.size())) {
    return InvalidArgument("Input tensor rank must match input shape length.");
  }
  HR_ASSIGN_OR_RETURN(Shape from, Shape::Make(dims));
  HR_ASSIGN_OR_RETURN(Dims to, Target(IntsOf(c.input(2)), from.num_elements()));
  // Places outside would be divided into other places, and silently.
  HR_RETURN_IF_ERROR(CheckPlaces(indices, dims, /*ordered=*/false));
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  const auto width = static_cast<int64_t>(to.size());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{n, width}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{width}));
  std::copy(to.begin(), to.end(), c.out<int64_t>(1));
  const int64_t* x = indices.data<int64_t>();
  int64_t* y = c.out<int64_t>(0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    // The place as a number, row-major, then split by the new sizes.
    for (int64_t d = 0; d < rank; ++d) at = at * dims[d] + x[i * rank + d];
    for (int64_t d = width; d-- > 0;) {
      y[i * width + d] = at % to[d];
      at /= to[d];
    }
  }
  return OkStatus();
}

HR_OP(SparseReshape)
    .Input("input_indices: int64")
    .Input("input_shape: int64")
    .Input("new_shape: int64")
    .Output("output_indices: int64")
    .Output("output_shape: int64")
    .Doc("The indices that the entries have under another shape.")
    .Shape(ReshapeRule)
    .Cpu(ComputeOwn<Reshape>);

}  // namespace
}  // namespace headrace
