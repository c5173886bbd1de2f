#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status ReorderRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(1));
  return OkStatus();
}

// The order follows from the indices alone: sizes may be anything, also too
// large to be multiplied.
Status Reorder(KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1);
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  if (n != values.dim(0)) {
    return InvalidArgument("Number of elements in indices (", n,
                           ") and values (", values.dim(0), ") do not match");
  }
  if (rank != c.input(2).dim(0)) {
    return InvalidArgument("Index rank (", rank, ") and shape rank (",
                           c.input(2).dim(0), ") do not match");
  }
  // The common case: most ops give sorted entries.
  if (RowsAreSorted(indices)) {
    CopyElements(indices, c.output(0));
    CopyElements(values, c.output(1));
    return OkStatus();
  }
  const std::vector<int64_t> order = SortedOrder(indices);
  const int64_t* from = indices.data<int64_t>();
  int64_t* rows = c.out<int64_t>(0);
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(from + order[i] * rank, rank, rows + i * rank);
  }
  DispatchElement(values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(values.raw());
    T* y = static_cast<T*>(c.output(1).raw());
    for (int64_t i = 0; i < n; ++i) y[i] = x[order[i]];
  });
  return OkStatus();
}

// Sorting 0, 1, 2, ... the same way tells where each value went.
Status ReorderGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (!dy) return g.status();
  const AttrMap wide = {{"out_type", DType::kInt64}};
  Value count = g("Size", {g.input(1)}, wide);
  Value numbers = g(
      "Range", {g.Scalar(DType::kInt64, 0), count, g.Scalar(DType::kInt64, 1)});
  ValueList sorted = g.All("SparseReorder", {g.input(0), numbers, g.input(2)});
  if (!g.ok()) return g.status();
  Value places = g("ExpandDims", {sorted[1], g.Int32(1)});
  Value shape = g("Shape", {g.input(1)}, wide);
  g.set(1, g("ScatterNd", {places, dy, shape}));
  return g.status();
}

HR_OP(SparseReorder)
    .Input("input_indices: int64")
    .Input("input_values: T")
    .Input("input_shape: int64")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Attr("T: type")
    .Doc("The entries in the order of their indices.")
    .Shape(ReorderRule)
    .Gradient(ReorderGradient)
    .GradientSkips({}, {0, 1})
    .Cpu(Compute<Reorder>);

}  // namespace
}  // namespace headrace
