#include "ops/sparse/sparse_input.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_join.h"

namespace headrace {

Dims IntsOf(const Tensor& t) {
  Dims out(t.num_elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = t.IntAt(i);
  return out;
}

std::string JoinInts(absl::Span<const int64_t> v) {
  return absl::StrJoin(v, ",");
}

StatusOr<SparseInput> SparseInputOf(const Tensor& indices, const Tensor& values,
                                    const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument(
        "Input indices should be a matrix but received "
        "shape: ",
        indices.shape());
  }
  if (values.rank() != 1) {
    return InvalidArgument(
        "Input values should be a vector but received "
        "shape: ",
        values.shape());
  }
  if (shape.rank() != 1) {
    return InvalidArgument(
        "Input shape should be a vector but received shape: ", shape.shape());
  }
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "Number of values must match first dimension of "
        "indices. Got ",
        values.dim(0), " values, indices shape: ", indices.shape());
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument(
        "Number of dimensions must match second dimension "
        "of indices. Got ",
        shape.dim(0), " dimensions, indices shape: ", indices.shape());
  }
  SparseInput s;
  s.indices = indices;
  s.values = values;
  s.dims = IntsOf(shape);
  HR_RETURN_IF_ERROR(Shape::Make(s.dims).status());
  s.count = values.dim(0);
  s.rank = static_cast<int>(shape.dim(0));
  return s;
}

StatusOr<SparseInput> SparseInputAt(const KernelContext& c, int first) {
  return SparseInputOf(c.input(first), c.input(first + 1), c.input(first + 2));
}

Status CheckPlaces(const Tensor& indices, absl::Span<const int64_t> dims,
                   bool ordered) {
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  auto text = [&](int64_t i) {
    Dims row;
    for (int64_t d = 0; d < rank; ++d)
      row.push_back(indices.IntAt(i * rank + d));
    return absl::StrCat("indices[", i, "] = [", JoinInts(row), "]");
  };
  for (int64_t i = 0; i < n; ++i) {
    int order = i == 0 ? 1 : 0;  // of this row against the one before
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t x = indices.IntAt(i * rank + d);
      if (x < 0 || x >= dims[d]) {
        return InvalidArgument(text(i),
                               " is out of bounds: need 0 <= index < [",
                               JoinInts(dims), "]");
      }
      if (order == 0) {
        const int64_t before = indices.IntAt((i - 1) * rank + d);
        order = x > before ? 1 : x < before ? -1 : 0;
      }
    }
    if (!ordered || order > 0) continue;
    if (order == 0) return InvalidArgument(text(i), " is repeated");
    return InvalidArgument(text(i),
                           " is out of order. Many sparse ops require sorted "
                           "indices.\n    Use `tf.sparse.reorder` to create a "
                           "correctly ordered copy.\n\n");
  }
  return OkStatus();
}

Status CheckInside(const SparseInput& s) {
  return CheckPlaces(s.indices, s.dims, /*ordered=*/false);
}
Status CheckOrdered(const SparseInput& s) {
  return CheckPlaces(s.indices, s.dims, /*ordered=*/true);
}

std::vector<int64_t> SortedOrder(const Tensor& indices) {
  const int64_t n = indices.dim(0);
  const int rank = static_cast<int>(indices.dim(1));
  const int64_t* x = indices.data<int64_t>();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  auto before = [&](int64_t a, int64_t b) {
    return CompareRows(x + a * rank, x + b * rank, rank) < 0;
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

Status CheckSparseRanks(const ShapeContext& c, int first) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(first), 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(first + 1), 1));
  return CheckRank(c.input(first + 2), 1);
}

int SparseRank(const ShapeContext& c, int first) {
  const Shape &indices = c.input(first), &shape = c.input(first + 2);
  int64_t rank = -1;
  if (indices.known_rank() && indices.rank() == 2) rank = indices[1];
  if (rank < 0 && shape.known_rank() && shape.rank() == 1) rank = shape[0];
  return rank > Shape::kMaxRank ? -1 : static_cast<int>(rank);
}

void SetSparseOutput(ShapeContext& c, int first, int rank) {
  c.set_output(first, Shape{-1, rank});
  c.set_output(first + 1, Shape{-1});
  c.set_output(first + 2, Shape{rank});
}

Status AllocateSparse(const KernelContext& c, int first, int64_t count,
                      absl::Span<const int64_t> dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  HR_RETURN_IF_ERROR(c.Allocate(first, Shape{count, rank}));
  HR_RETURN_IF_ERROR(c.Allocate(first + 1, Shape{count}));
  HR_RETURN_IF_ERROR(c.Allocate(first + 2, Shape{rank}));
  std::copy(dims.begin(), dims.end(), c.out<int64_t>(first + 2));
  return OkStatus();
}

}  // namespace headrace
