// SparseSlice, its gradient and SparseSplit: the entries inside a box.
#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status SliceRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(4), 1));
  SetSparseOutput(c, 0, SparseRank(c, 0));
  return OkStatus();
}

// The entries of `s` in [start, start + size) of every dimension.
std::vector<int64_t> EntriesInside(const SparseInput& s, const Dims& start,
                                   const Dims& size) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t* row = s.row(i);
    bool inside = true;
    for (int d = 0; d < s.rank && inside; ++d) {
      // No sum of start and size, which could overflow.
      inside = row[d] >= start[d] && row[d] - start[d] < size[d];
    }
    if (inside) chosen.push_back(i);
  }
  return chosen;
}

// Writes the chosen entries, moved by -start, to given outputs.
void Take(const SparseInput& s, absl::Span<const int64_t> chosen,
          const Dims& start, Tensor& indices, Tensor& values) {
  int64_t* y = indices.data<int64_t>();
  for (int64_t i : chosen) {
    for (int d = 0; d < s.rank; ++d) *y++ = s.row(i)[d] - start[d];
  }
  DispatchElement(s.values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(values.raw());
    for (int64_t i : chosen) *out++ = static_cast<const T*>(s.values.raw())[i];
  });
}

Status Slice(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  const Dims start = IntsOf(c.input(3));
  Dims size = IntsOf(c.input(4));
  if (static_cast<int>(start.size()) != s.rank) {
    return InvalidArgument("Expected start to be a vector of length ", s.rank,
                           " but got length ", start.size());
  }
  if (static_cast<int>(size.size()) != s.rank) {
    return InvalidArgument("Expected size to be a vector of length ", s.rank,
                           " but got length ", size.size());
  }
  for (int d = 0; d < s.rank; ++d) {
    if (start[d] < 0 || size[d] < 0) {
      return InvalidArgument(
          "expected start and size to be non-negative but "
          "got start ",
          start[d], " and size ", size[d], " in dimension ", d);
    }
    // A box may reach beyond the tensor, or begin there: it is cut.
    size[d] = std::max<int64_t>(0, std::min(size[d], s.dims[d] - start[d]));
  }
  const std::vector<int64_t> chosen = EntriesInside(s, start, size);
  HR_RETURN_IF_ERROR(
      AllocateSparse(c, 0, static_cast<int64_t>(chosen.size()), size));
  Take(s, chosen, start, c.output(0), c.output(1));
  return OkStatus();
}

Status SliceGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (dy) {
    g.set(1, g("SparseSliceGrad", {dy, g.input(0), g.input(3), g.output(0)}));
  }
  return g.status();
}

HR_OP(SparseSlice)
    .Input("indices: int64")
    .Input("values: T")
    .Input("shape: int64")
    .Input("start: int64")
    .Input("size: int64")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Output("output_shape: int64")
    .Attr("T: type")
    .Doc("The part of a sparse tensor inside a box.")
    .Shape(SliceRule)
    .Gradient(SliceGradient)
    .GradientSkips({1, 2, 4}, {1, 2})
    .Cpu(ComputeOwn<Slice>);

Status SliceGradRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 2));
  c.set_output(0, Shape{c.input(1).known_rank() ? c.input(1)[0] : -1});
  return OkStatus();
}

// Both index lists are in one order: each output entry is the next input
// entry that lies at its place.
Status SliceGrad(KernelContext& c) {
  const Tensor &dy = c.input(0), &in = c.input(1), &out = c.input(3);
  const Dims start = IntsOf(c.input(2));
  const int rank = static_cast<int>(in.dim(1));
  if (out.dim(1) != rank || static_cast<int>(start.size()) != rank) {
    return InvalidArgument(
        "The input_indices, input_start and output_indices "
        "should have the same rank, got ",
        rank, ", ", start.size(), " and ", out.dim(1));
  }
  if (dy.dim(0) != out.dim(0)) {
    return InvalidArgument(
        "# elements and # rows of backprop_val_grad and "
        "output_indices should match (#sum): got ",
        dy.dim(0), " and ", out.dim(0));
  }
  FillZero(c.output(0));
  const int64_t *x = in.data<int64_t>(), *y = out.data<int64_t>();
  int64_t k = 0;
  DispatchElement(dy.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < in.dim(0) && k < out.dim(0); ++i) {
      bool same = true;
      for (int d = 0; d < rank && same; ++d) {
        same = x[i * rank + d] - y[k * rank + d] == start[d];
      }
      if (!same) continue;
      static_cast<T*>(c.output(0).raw())[i] =
          static_cast<const T*>(dy.raw())[k++];
    }
  });
  if (k < out.dim(0)) {
    return Internal(
        "Elements of backprop_val_grad aren't all propagated. Num "
        "elements:",
        out.dim(0), ", used: ", k);
  }
  return OkStatus();
}

HR_OP(SparseSliceGrad)
    .Input("backprop_val_grad: T")
    .Input("input_indices: int64")
    .Input("input_start: int64")
    .Input("output_indices: int64")
    .Output("val_grad: T")
    .Attr("T: numbertype")
    .Doc("The gradient of SparseSlice for its values.")
    .Shape(SliceGradRule)
    .Cpu(Compute<SliceGrad>);

Status SplitRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 1));
  if (c.input(0).known_rank() && c.input(0).rank() != 0) {
    return InvalidArgument("Input axis should be a scalar but received shape ",
                           c.input(0));
  }
  const int n = c.num_outputs() / 3, rank = SparseRank(c, 1);
  for (int i = 0; i < n; ++i) {
    c.set_output(i, headrace::Shape{-1, rank});
    c.set_output(n + i, headrace::Shape{-1});
    c.set_output(2 * n + i, headrace::Shape{rank});
  }
  return OkStatus();
}

Status Split(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 1));
  int64_t axis = c.input(0).IntAt(0);
  if (axis < -s.rank || axis >= s.rank) {
    return InvalidArgument("Input axis should be in range [", -s.rank, ", ",
                           s.rank, "), got ", axis);
  }
  if (axis < 0) axis += s.rank;
  const int n = c.num_outputs() / 3;
  if (n > s.dims[axis]) {
    return InvalidArgument(
        "Input num_split should be between 1 and the "
        "splitting dimension size (",
        s.dims[axis], "), got ", n);
  }
  HR_RETURN_IF_ERROR(CheckInside(s));
  Dims start(s.rank, 0), size = s.dims;
  for (int i = 0; i < n; ++i) {
    // Uneven sizes are allowed here: the first parts are one longer.
    size[axis] = s.dims[axis] / n + (i < s.dims[axis] % n ? 1 : 0);
    const std::vector<int64_t> chosen = EntriesInside(s, start, size);
    const auto count = static_cast<int64_t>(chosen.size());
    HR_RETURN_IF_ERROR(c.Allocate(i, Shape{count, s.rank}));
    HR_RETURN_IF_ERROR(c.Allocate(n + i, Shape{count}));
    HR_RETURN_IF_ERROR(c.Allocate(2 * n + i, Shape{s.rank}));
    std::copy(size.begin(), size.end(), c.out<int64_t>(2 * n + i));
    Take(s, chosen, start, c.output(i), c.output(n + i));
    start[axis] += size[axis];
  }
  return OkStatus();
}

HR_OP(SparseSplit)
    .Input("split_dim: int64")
    .Input("indices: int64")
    .Input("values: T")
    .Input("shape: int64")
    .Output("output_indices: num_split * int64")
    .Output("output_values: num_split * T")
    .Output("output_shape: num_split * int64")
    .Attr("num_split: int >= 1")
    .Attr("T: type")
    .Doc("A sparse tensor in pieces along a dimension.")
    .Shape(SplitRule)
    .Cpu(ComputeOwn<Split>);

}  // namespace
}  // namespace headrace
