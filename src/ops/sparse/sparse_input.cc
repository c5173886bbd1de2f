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
  // Refuses sizes below 0 and products past int64: what follows may multiply.
  HR_RETURN_IF_ERROR(Shape::Make(s.dims).status());
  s.count = values.dim(0);
  s.rank = static_cast<int>(shape.dim(0));
  return s;
}

StatusOr<SparseInput> SparseInputAt(const KernelContext& c, int first) {
  return SparseInputOf(c.input(first), c.input(first + 1), c.input(first + 2));
}

namespace {

// The first row that is out of bounds, or, if that is asked for, does not come
// after the row before; n where all are right. `kRank`: the rank where it is a
// common one, else 0.
template <int kRank, typename I>
int64_t FirstWrong(const I* x, int64_t n, absl::Span<const int64_t> dims,
                   bool ordered) {
  const int64_t rank = kRank ? kRank : static_cast<int64_t>(dims.size());
  Dims sizes(dims.begin(), dims.end());
  const int64_t* size = sizes.data();
  for (int64_t i = 0; i < n; ++i, x += rank) {
    bool inside = true, later = i == 0, same = i > 0;
    for (int64_t d = 0; d < rank; ++d) {
      // One comparison for both ends: a negative index is a huge one unsigned.
      // And no branch, as nearly all rows are right.
      inside &= static_cast<uint64_t>(x[d]) < static_cast<uint64_t>(size[d]);
      if (ordered && i > 0) {
        later |= same && x[d] > x[d - rank];
        same &= x[d] == x[d - rank];
      }
    }
    if (!inside || (ordered && !later)) return i;
  }
  return n;
}
template <typename I>
int64_t FirstWrong(const I* x, int64_t n, absl::Span<const int64_t> dims,
                   bool ordered) {
  if (dims.size() == 1) return FirstWrong<1>(x, n, dims, ordered);
  if (dims.size() == 2) return FirstWrong<2>(x, n, dims, ordered);
  return FirstWrong<0>(x, n, dims, ordered);
}

}  // namespace

Status CheckPlaces(const Tensor& indices, absl::Span<const int64_t> dims,
                   bool ordered) {
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  const int64_t i =
      indices.dtype() == DType::kInt32
          ? FirstWrong(indices.data<int32_t>(), n, dims.first(rank), ordered)
          : FirstWrong(indices.data<int64_t>(), n, dims.first(rank), ordered);
  if (i == n) return OkStatus();
  Dims row, before;
  bool inside = true;
  for (int64_t d = 0; d < rank; ++d) {
    row.push_back(indices.IntAt(i * rank + d));
    if (i > 0) before.push_back(indices.IntAt((i - 1) * rank + d));
    inside = inside && row[d] >= 0 && row[d] < dims[d];
  }
  const std::string text =
      absl::StrCat("indices[", i, "] = [", JoinInts(row), "]");
  if (!inside) {
    return InvalidArgument(text, " is out of bounds: need 0 <= index < [",
                           JoinInts(dims), "]");
  }
  if (row == before) return InvalidArgument(text, " is repeated");
  return InvalidArgument(text,
                         " is out of order. Many sparse ops require sorted "
                         "indices.\n    Use `tf.sparse.reorder` to create a "
                         "correctly ordered copy.\n\n");
}

Status CheckInside(const SparseInput& s) {
  return CheckPlaces(s.indices, s.dims, /*ordered=*/false);
}
Status CheckOrdered(const SparseInput& s) {
  return CheckPlaces(s.indices, s.dims, /*ordered=*/true);
}

bool RowsAreSorted(const Tensor& indices) {
  const int rank = static_cast<int>(indices.dim(1));
  const int64_t* x = indices.data<int64_t>();
  for (int64_t i = 1; i < indices.dim(0); ++i) {
    if (CompareRows(x + (i - 1) * rank, x + i * rank, rank) > 0) return false;
  }
  return true;
}

std::vector<int64_t> SortedOrder(const Tensor& indices) {
  const int64_t n = indices.dim(0);
  const int rank = static_cast<int>(indices.dim(1));
  const int64_t* x = indices.data<int64_t>();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  // Most tensors are in order already: one pass tells.
  if (RowsAreSorted(indices)) return order;
  // Stable: entries at one place stay in the order in which they were given.
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return CompareRows(x + a * rank, x + b * rank, rank) < 0;
  });
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
