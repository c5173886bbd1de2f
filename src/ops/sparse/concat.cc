#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

Status ConcatRule(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int rank = -1;
  for (int i = 0; i < n; ++i) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(i), 2));
    HR_RETURN_IF_ERROR(CheckRank(c.input(n + i), 1));
    HR_RETURN_IF_ERROR(CheckRank(c.input(2 * n + i), 1));
    const Shape& shape = c.input(2 * n + i);
    if (shape.known_rank() && shape[0] >= 0 && shape[0] <= Shape::kMaxRank) {
      rank = static_cast<int>(shape[0]);
    }
  }
  SetSparseOutput(c, 0, rank);
  return OkStatus();
}

StatusOr<std::vector<SparseInput>> Parts(const KernelContext& c, int* axis) {
  const int n = c.num_inputs() / 3;
  std::vector<SparseInput> parts(n);
  for (int i = 0; i < n; ++i) {
    HR_ASSIGN_OR_RETURN(parts[i], SparseInputOf(c.input(i), c.input(n + i),
                                                c.input(2 * n + i)));
  }
  const int rank = parts[0].rank;
  const int64_t dim = c.op().int_attr("concat_dim");
  if (dim < -rank || dim >= rank) {
    return InvalidArgument("Concat dimension must be in range [", -rank, ", ",
                           rank, "), got ", dim);
  }
  *axis = static_cast<int>(dim < 0 ? dim + rank : dim);
  for (int i = 1; i < n; ++i) {
    if (parts[i].rank != rank) {
      return InvalidArgument("Ranks of all input tensors must match: expected ",
                             rank, " but got ", parts[i].rank, " at position ",
                             i);
    }
    for (int d = 0; d < rank; ++d) {
      if (d == *axis || parts[i].dims[d] == parts[0].dims[d]) continue;
      return InvalidArgument("Input shapes must match: expected ",
                             parts[0].dims[d], " for dimension ", d,
                             " but got ", parts[i].dims[d], " at position ", i);
    }
  }
  return parts;
}

Status Concat(KernelContext& c) {
  int axis = 0;
  HR_ASSIGN_OR_RETURN(std::vector<SparseInput> parts, Parts(c, &axis));
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  int64_t count = 0;
  for (const SparseInput& s : parts) {
    // The sizes are the caller's and may be anything.
    if (__builtin_add_overflow(dims[axis], s.dims[axis], &dims[axis])) {
      return InvalidArgument("SparseConcat: the size along dimension ", axis,
                             " overflows");
    }
    count += s.count;
  }
  const int rank = parts[0].rank;
  HR_ASSIGN_OR_RETURN(Tensor all,
                      c.Temporary(DType::kInt64, Shape{count, rank}));
  std::vector<std::pair<int, int64_t>> source;  // part, entry
  source.reserve(count);
  int64_t offset = 0;
  int64_t* y = all.data<int64_t>();
  for (size_t p = 0; p < parts.size(); ++p) {
    for (int64_t i = 0; i < parts[p].count; ++i, y += rank) {
      std::copy_n(parts[p].row(i), rank, y);
      if (__builtin_add_overflow(y[axis], offset, &y[axis])) {
        return InvalidArgument("SparseConcat: an index overflows");
      }
      source.emplace_back(static_cast<int>(p), i);
    }
    offset += parts[p].dims[axis];
  }
  HR_RETURN_IF_ERROR(AllocateSparse(c, 0, count, dims));
  // The parts lie one behind another only along the first dimension; along
  // others their entries interleave.
  const std::vector<int64_t> order = SortedOrder(all);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(all.data<int64_t>() + order[i] * rank, rank,
                c.out<int64_t>(0) + i * rank);
  }
  DispatchElement(parts[0].values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(c.output(1).raw());
    for (int64_t i = 0; i < count; ++i) {
      const auto& [p, k] = source[order[i]];
      out[i] = static_cast<const T*>(parts[p].values.raw())[k];
    }
  });
  return OkStatus();
}

HR_OP(SparseConcat)
    .Input("indices: N * int64")
    .Input("values: N * T")
    .Input("shapes: N * int64")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Output("output_shape: int64")
    .Attr("concat_dim: int")
    .Attr("N: int >= 2")
    .Attr("T: type")
    .Doc("Sparse tensors one after another along a dimension.")
    .Shape(ConcatRule)
    .NoGradient()
    .Cpu(ComputeOwn<Concat>);

}  // namespace
}  // namespace headrace
