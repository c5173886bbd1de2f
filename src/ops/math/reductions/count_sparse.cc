// DenseCountSparseOutput, SparseCountSparseOutput, RaggedCountSparseOutput,
// SparseBincount and RaggedBincount: how often values occur in each row.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "op/op.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

using WeightTypes = TypeList<int32_t, int64_t, float, double>;

// Values with the row that each belongs to. Without rows (`vector`), all are
// of one and the result has no dimension for them.
struct Rows {
  bool vector = false;
  int64_t count = 1;
  Tensor values;
  std::vector<int64_t> row;  // of each value
};

// Bins take as many weights as there are values, in whatever shape; sparse
// counts want the values' own.
Status CheckWeights(const KernelContext& c, const Tensor& values,
                    const Tensor& weights) {
  const int64_t n = weights.num_elements();
  if (n == 0 || weights.shape() == values.shape()) return OkStatus();
  if (absl::EndsWith(c.op().name(), "Bincount")) {
    if (n == values.num_elements()) return OkStatus();
    return InvalidArgument(
        "Input indices and weights must have the same size.");
  }
  return InvalidArgument(
      "Weights and values must have the same shape. Weight shape: ",
      weights.shape(), "; values shape: ", values.shape());
}

StatusOr<Rows> DenseRows(const KernelContext& c) {
  Rows r;
  r.values = c.input(0);
  const Shape& s = r.values.shape();
  if (s.rank() != 1 && s.rank() != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ",
                           s);
  }
  HR_RETURN_IF_ERROR(CheckWeights(c, r.values, c.input(1)));
  r.vector = s.rank() == 1;
  r.count = r.vector ? 1 : s[0];
  r.row.resize(r.values.num_elements());
  const int64_t width = s[s.rank() - 1];
  // A vector's rows are all 0.
  for (size_t i = 0; !r.vector && i < r.row.size(); ++i) {
    r.row[i] = static_cast<int64_t>(i) / width;
  }
  return r;
}

StatusOr<Rows> SparseRows(const KernelContext& c, int weights) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  if (s.rank != 1 && s.rank != 2) {
    return InvalidArgument("Input must be a 1 or 2-dimensional tensor. Got: ",
                           s.rank, " dimensions");
  }
  HR_RETURN_IF_ERROR(CheckWeights(c, s.values, c.input(weights)));
  // Before rows are read from the indices.
  HR_RETURN_IF_ERROR(CheckInside(s));
  Rows r;
  r.values = s.values;
  r.vector = s.rank == 1;
  r.count = r.vector ? 1 : s.dims[0];
  r.row.resize(s.count);
  for (int64_t i = 0; !r.vector && i < s.count; ++i) r.row[i] = s.row(i)[0];
  return r;
}

StatusOr<Rows> RaggedRows(const KernelContext& c, int weights) {
  const Tensor& splits = c.input(0);
  const int64_t n = c.input(1).num_elements();
  if (splits.num_elements() < 1) {
    return absl::EndsWith(c.op().name(), "Bincount")
               ? InvalidArgument("Splits must be non-empty")
               : InvalidArgument(
                     "Must provide at least 2 elements for the splits "
                     "argument");
  }
  const int64_t* at = splits.data<int64_t>();
  Rows r;
  r.count = splits.num_elements() - 1;
  if (at[0] != 0) {
    return InvalidArgument("Splits must start with 0, not with ", at[0]);
  }
  if (at[r.count] != n) {
    return InvalidArgument("Splits must end with the number of values, got ",
                           at[r.count], " instead of ", n);
  }
  HR_RETURN_IF_ERROR(CheckWeights(c, c.input(1), c.input(weights)));
  r.values = c.input(1);
  r.row.resize(n);
  for (int64_t k = 0; k < r.count; ++k) {
    // Looked at before filling: the row numbers would be written past their
    // end.
    if (at[k + 1] < at[k] || at[k + 1] > n) {
      return InvalidArgument("Splits must be sorted, got ", at[k + 1],
                             " after ", at[k]);
    }
    std::fill(r.row.begin() + at[k], r.row.begin() + at[k + 1], k);
  }
  return r;
}

// --- Counts as a sparse tensor.
template <typename W>
Status CountSparse(KernelContext& c, const Rows& r, const Tensor& weights) {
  const int64_t low = c.op().int_attr("minlength");
  const int64_t high = c.op().int_attr("maxlength");
  const bool binary = c.op().bool_attr("binary_output");
  const W* w = weights.num_elements() ? weights.data<W>() : nullptr;
  // Ordered by row and value, as a sparse tensor's indices are.
  std::map<std::pair<int64_t, int64_t>, W> counts;
  int64_t largest = -1;
  for (size_t i = 0; i < r.row.size(); ++i) {
    const int64_t v = r.values.IntAt(static_cast<int64_t>(i));
    if (v < 0) return InvalidArgument("Input values must all be non-negative");
    // 0 and -1 stand for no bound.
    if (high > 0 && v >= high) continue;
    largest = std::max(largest, v);
    W& count = counts[{r.row[i], v}];
    if (binary) {
      count = W(1);
    } else if (w) {
      count = W(count + w[i]);
    } else {
      count = W(count + W(1));
    }
  }
  int64_t width = std::max(low, largest + 1);
  if (high > 0) width = high;
  const auto n = static_cast<int64_t>(counts.size());
  const int rank = r.vector ? 1 : 2;
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{n, rank}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{n}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{rank}));
  int64_t* at = c.out<int64_t>(0);
  W* values = c.out<W>(1);
  for (const auto& [place, count] : counts) {
    if (!r.vector) *at++ = place.first;
    *at++ = place.second;
    *values++ = count;
  }
  if (!r.vector) c.out<int64_t>(2)[0] = r.count;
  c.out<int64_t>(2)[rank - 1] = width;
  return OkStatus();
}

Status RunCount(KernelContext& c) {
  const std::string& op = c.op().name();
  const int weights = c.num_inputs() - 1;
  // The first letter tells the three families apart: Dense, Sparse, Ragged.
  HR_ASSIGN_OR_RETURN(const Rows rows, op[0] == 'D'   ? DenseRows(c)
                                       : op[0] == 'S' ? SparseRows(c, weights)
                                                      : RaggedRows(c, weights));
  Status s;
  DispatchDType(c.op().output_types()[1], WeightTypes{}, [&](auto tag) {
    s = CountSparse<typename decltype(tag)::type>(c, rows, c.input(weights));
  });
  return s;
}

Status CountShape(ShapeContext& c) {
  int64_t rank = c.op().name()[0] == 'R' ? 2 : -1;
  if (c.op().name()[0] == 'D' && c.input(0).known_rank()) {
    rank = c.input(0).rank();
  } else if (c.op().name()[0] == 'S') {
    HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
    rank = SparseRank(c, 0);
  } else if (rank == 2) {
    HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
    HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  }
  c.set_output(0, Shape{-1, rank});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{rank});
  return OkStatus();
}

void RegisterCount(OpBuilder b) {
  b.Input("weights: output_type")
      .Output("output_indices: int64")
      .Output("output_values: output_type")
      .Output("output_dense_shape: int64")
      .Attr("T: {int32, int64}")
      .Attr("minlength: int >= -1 = -1")
      .Attr("maxlength: int >= -1 = -1")
      .Attr("binary_output: bool")
      .Attr("output_type: {int32, int64, float, double}")
      .Doc("How often each value occurs in each row, as a sparse tensor.")
      .Shape(CountShape)
      .Cpu(ComputeOwn<RunCount>)
      .Register();
}

// --- Counts as a dense tensor.
template <typename W>
Status CountDense(KernelContext& c, const Rows& r, int64_t size,
                  const Tensor& weights) {
  const bool binary = c.op().bool_attr("binary_output");
  const W* w = weights.num_elements() ? weights.data<W>() : nullptr;
  HR_ASSIGN_OR_RETURN(const Shape shape, r.vector
                                             ? Shape::Make({size})
                                             : Shape::Make({r.count, size}));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  W* bins = c.out<W>(0);
  std::fill_n(bins, shape.num_elements(), W(0));
  for (size_t i = 0; i < r.row.size(); ++i) {
    const int64_t v = r.values.IntAt(static_cast<int64_t>(i));
    if (v < 0) return InvalidArgument("Input must be non-negative");
    if (v >= size) continue;
    W& bin = bins[r.row[i] * size + v];
    bin = binary ? W(1) : W(bin + (w ? w[i] : W(1)));
  }
  return OkStatus();
}

Status RunRaggedBincount(KernelContext& c) {
  const int weights = c.num_inputs() - 1;
  HR_ASSIGN_OR_RETURN(const Rows rows, c.op().name()[0] == 'S'
                                           ? SparseRows(c, weights)
                                           : RaggedRows(c, weights));
  const int64_t size = c.input(weights - 1).IntAt(0);
  Status s;
  DispatchDType(c.op().output_types()[0], WeightTypes{}, [&](auto tag) {
    s = CountDense<typename decltype(tag)::type>(c, rows, size,
                                                 c.input(weights));
  });
  return s;
}

Status RaggedBincountShape(ShapeContext& c) {
  const int size_input = c.num_inputs() - 2;
  HR_RETURN_IF_ERROR(CheckRank(c.input(size_input), 0));
  bool known = false;
  int64_t size = -1;
  HR_RETURN_IF_ERROR(c.IntValue(size_input, &known, &size));
  if (known && size < 0) {
    return InvalidArgument("size (", size, ") must be non-negative");
  }
  if (!known) size = -1;
  if (c.op().name()[0] == 'R') {
    HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
    HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
    const int64_t splits = c.input(0).known_rank() ? c.input(0)[0] : -1;
    c.set_output(0, Shape{splits > 0 ? splits - 1 : -1, size});
    return OkStatus();
  }
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  const int rank = SparseRank(c, 0);
  if (rank == 1) c.set_output(0, Shape{size});
  if (rank == 2) c.set_output(0, Shape{-1, size});
  return OkStatus();
}

void RegisterBincount(OpBuilder b) {
  b.Input("size: Tidx")
      .Input("weights: T")
      .Output("output: T")
      .Attr("Tidx: {int32, int64}")
      .Attr("T: {int32, int64, float, double}")
      .Attr("binary_output: bool = false")
      .Doc("How often each value occurs in each row.")
      .Shape(RaggedBincountShape)
      .Cpu(ComputeOwn<RunRaggedBincount>)
      .Register();
}

const bool registered = [] {
  OpBuilder dense("DenseCountSparseOutput");
  RegisterCount(dense.Input("values: T"));
  OpBuilder sparse("SparseCountSparseOutput");
  RegisterCount(sparse.Input("indices: int64")
                    .Input("values: T")
                    .Input("dense_shape: int64"));
  OpBuilder ragged("RaggedCountSparseOutput");
  RegisterCount(ragged.Input("splits: int64").Input("values: T"));
  OpBuilder sparse_bins("SparseBincount");
  RegisterBincount(sparse_bins.Input("indices: int64")
                       .Input("values: Tidx")
                       .Input("dense_shape: int64"));
  OpBuilder ragged_bins("RaggedBincount");
  RegisterBincount(ragged_bins.Input("splits: int64").Input("values: Tidx"));
  return true;
}();

}  // namespace
}  // namespace headrace
