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

Status Reorder(KernelContext& c) {
  const Shape &rows_of = c.input(0).shape(), &shape = c.input(2).shape();
  if (rows_of.rank() == 2 && c.input(1).rank() == 1 && shape.rank() == 1) {
    if (rows_of[0] != c.input(1).dim(0)) {
      return InvalidArgument("Number of elements in indices (", rows_of[0],
                             ") and values (", c.input(1).dim(0),
                             ") do not match");
    }
    if (rows_of[1] != shape[0]) {
      return InvalidArgument("Index rank (", rows_of[1], ") and shape rank (",
                             shape[0], ") do not match");
    }
  }
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  if (RowsAreSorted(s.indices)) {
    CopyElements(s.indices, c.output(0));
    CopyElements(s.values, c.output(1));
    return OkStatus();
  }
  const std::vector<int64_t> order = SortedOrder(s.indices);
  int64_t* rows = c.out<int64_t>(0);
  for (int64_t i = 0; i < s.count; ++i) {
    std::copy_n(s.row(order[i]), s.rank, rows + i * s.rank);
  }
  DispatchElement(s.values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(s.values.raw());
    T* y = static_cast<T*>(c.output(1).raw());
    for (int64_t i = 0; i < s.count; ++i) y[i] = x[order[i]];
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
