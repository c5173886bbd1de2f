// SparseCross, SparseCrossV2, SparseCrossHashed and RaggedCross: all ways to
// take one value of each column, row by row, as texts or as hashes of them.
#include <limits>
#include <vector>

#include "base/coding.h"
#include "op/op.h"
#include "ops/ragged/splits.h"
#include "ops/string/hash.h"

namespace headrace {
namespace {

constexpr int64_t kMostRows = 1 << 26;
constexpr uint64_t kMostHash = std::numeric_limits<int64_t>::max();

// Row r has values [starts[r], starts[r + 1]).
struct Column {
  Tensor values;  // int64 or string
  std::vector<int64_t> starts;
  bool sparse = false;

  int64_t rows() const { return static_cast<int64_t>(starts.size()) - 1; }
  bool is_text() const { return values.dtype() == DType::kString; }
  const std::string& text(int64_t i) const {
    return values.data<std::string>()[i];
  }
  int64_t number(int64_t i) const { return values.data<int64_t>()[i]; }
};

// --- Columns from inputs.

StatusOr<Column> SparseColumn(const Tensor& indices, const Tensor& values,
                              const Tensor& shape, int position) {
  if (indices.rank() != 2) {
    return InvalidArgument(
        "Input indices should be a matrix but received shape ", indices.shape(),
        " at position ", position);
  }
  if (indices.dim(1) != 2) {
    return InvalidArgument("Expected D2 of index to be 2 got ", indices.dim(1),
                           " at position ", position);
  }
  if (values.rank() != 1) {
    return InvalidArgument(
        "Input values should be a vector but received shape ", values.shape(),
        " at position ", position);
  }
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Expected size of values to be ", indices.dim(0),
                           " got ", values.dim(0), " at position ", position);
  }
  if (shape.rank() != 1) {
    return InvalidArgument(
        "Input shapes should be a vector but received shape ", shape.shape(),
        " at position ", position);
  }
  if (shape.dim(0) != 2) {
    return InvalidArgument("shape should imply a 2D tensor, but got ",
                           shape.shape(), " at position ", position);
  }
  const int64_t rows = shape.data<int64_t>()[0], n = indices.dim(0);
  if (rows < 0) {
    return InvalidArgument("a sparse tensor has ", rows, " rows at position ",
                           position);
  }
  // The size may be anything, and each row takes memory here even when it is
  // empty.
  if (rows > kMostRows) {
    return ResourceExhausted("crosses of ", rows, " rows, at position ",
                             position);
  }
  Column c;
  c.values = values;
  c.sparse = true;
  c.starts.reserve(rows + 1);
  int64_t at = 0;
  for (int64_t r = 0; r < rows; ++r) {
    c.starts.push_back(at);
    // Entries in order of their rows; what is left over at the end was not.
    while (at < n && indices.data<int64_t>()[2 * at] == r) ++at;
  }
  c.starts.push_back(at);
  if (at != n) {
    return InvalidArgument("indices[", at, "] = [",
                           indices.data<int64_t>()[2 * at],
                           ", ...] is out of order or out of bounds of ", rows,
                           " rows, at position ", position);
  }
  return c;
}

StatusOr<Column> DenseColumn(const Tensor& values, int position) {
  if (values.rank() != 2) {
    return InvalidArgument(
        "Dense inputs should be a matrix but received shape ", values.shape(),
        " at position ", position);
  }
  Column c;
  c.values = values;
  for (int64_t r = 0; r <= values.dim(0); ++r) {
    c.starts.push_back(r * values.dim(1));
  }
  return c;
}

StatusOr<Column> RaggedColumn(const Tensor& values, const Tensor& splits) {
  if (values.rank() != 1) {
    return InvalidArgument("values of a ragged tensor must be a vector, got ",
                           values.shape());
  }
  HR_RETURN_IF_ERROR(CheckSplits(splits, values.dim(0)));
  Column c;
  c.values = values;
  for (int64_t i = 0; i < splits.num_elements(); ++i) {
    c.starts.push_back(splits.IntAt(i));
  }
  return c;
}

Status CheckRows(absl::Span<const Column> columns) {
  for (size_t i = 1; i < columns.size(); ++i) {
    if (columns[i].rows() != columns[0].rows()) {
      return InvalidArgument("Expected batch size ", columns[0].rows(), " got ",
                             columns[i].rows(), " at position ", i);
    }
  }
  return OkStatus();
}

// The columns of the three sparse ops: sparse ones first.
StatusOr<std::vector<Column>> SparseAndDense(const KernelContext& c) {
  const ResolvedOp& op = c.op();
  const ArgRange indices = op.input_range(0), values = op.input_range(1);
  const ArgRange shapes = op.input_range(2), dense = op.input_range(3);
  if (values.size() != indices.size()) {
    return InvalidArgument("Expected ", indices.size(), " input values, got ",
                           values.size());
  }
  std::vector<Column> columns;
  for (int i = 0; i < indices.size(); ++i) {
    HR_ASSIGN_OR_RETURN(
        Column column,
        SparseColumn(c.input(indices.begin + i), c.input(values.begin + i),
                     c.input(shapes.begin + i), i));
    columns.push_back(std::move(column));
  }
  for (int i = dense.begin; i < dense.end; ++i) {
    HR_ASSIGN_OR_RETURN(Column column,
                        DenseColumn(c.input(i), i - dense.begin));
    columns.push_back(std::move(column));
  }
  HR_RETURN_IF_ERROR(CheckRows(columns));
  return columns;
}

// --- Crosses.

// How many crosses each row has, as starts.
StatusOr<std::vector<int64_t>> StartsOf(absl::Span<const Column> columns) {
  std::vector<int64_t> starts{0};
  const int64_t rows = columns.empty() ? 0 : columns[0].rows();
  starts.reserve(rows + 1);
  for (int64_t r = 0; r < rows; ++r) {
    // A row without a value in some column has no cross: the product is 0.
    int64_t count = 1, sum = 0;
    for (const Column& column : columns) {
      const int64_t n = column.starts[r + 1] - column.starts[r];
      if (!MultiplyChecked(count, n, &count)) {
        return InvalidArgument("row ", r, " has too many crosses");
      }
    }
    if (__builtin_add_overflow(starts.back(), count, &sum)) {
      return InvalidArgument("there are too many crosses");
    }
    starts.push_back(sum);
  }
  return starts;
}

// Calls fn(places): one place in each column, the last column's moving first.
template <typename F>
void ForEachCross(absl::Span<const Column> columns, F&& fn) {
  const int64_t rows = columns.empty() ? 0 : columns[0].rows();
  std::vector<int64_t> at(columns.size());
  for (int64_t r = 0; r < rows; ++r) {
    bool some = true;
    for (size_t k = 0; k < columns.size(); ++k) {
      at[k] = columns[k].starts[r];
      some &= at[k] < columns[k].starts[r + 1];
    }
    while (some) {
      fn(absl::MakeConstSpan(at));
      size_t k = columns.size();
      // Like an odometer: a column that is through begins anew and moves the
      // one before it.
      while (k > 0 && ++at[k - 1] == columns[k - 1].starts[r + 1]) {
        --k;
        at[k] = columns[k].starts[r];
      }
      some = k > 0;
    }
  }
}

void JoinAll(absl::Span<const Column> columns, StringView separator,
             std::string* out) {
  ForEachCross(columns, [&](absl::Span<const int64_t> at) {
    for (size_t k = 0; k < columns.size(); ++k) {
      if (k > 0) absl::StrAppend(out, separator);
      if (columns[k].is_text()) {
        out->append(columns[k].text(at[k]));
      } else {
        absl::StrAppend(out, columns[k].number(at[k]));
      }
    }
    ++out;
  });
}

uint64_t Mix(uint64_t v) { return v ^ v >> 47; }

// One fingerprint of two, as upstream has it.
uint64_t Combine(uint64_t a, uint64_t b) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  uint64_t v = a ^ kFactor;
  v ^= Mix(b * kFactor) * kFactor;
  v *= kFactor;
  v = Mix(v) * kFactor;
  return Mix(v);
}

// Without a number of buckets below 2^63 - 1, so that it is an int64.
int64_t BucketOf(uint64_t hash, int64_t buckets) {
  return static_cast<int64_t>(
      hash % (buckets > 0 ? static_cast<uint64_t>(buckets) : kMostHash));
}

// From `key` on; numbers stand for themselves.
void HashAll(absl::Span<const Column> columns, int64_t key, int64_t buckets,
             int64_t* out) {
  ForEachCross(columns, [&](absl::Span<const int64_t> at) {
    auto hash = static_cast<uint64_t>(key);
    for (size_t k = 0; k < columns.size(); ++k) {
      hash =
          Combine(hash, columns[k].is_text()
                            ? Fingerprint64(columns[k].text(at[k]))
                            : static_cast<uint64_t>(columns[k].number(at[k])));
    }
    *out++ = BucketOf(hash, buckets);
  });
}

// --- Sparse results.

Status AllocateCrosses(KernelContext& c, absl::Span<const int64_t> starts) {
  const int64_t total = starts.back();
  const auto rows = static_cast<int64_t>(starts.size()) - 1;
  int64_t most = 0;
  // Made with its check, as crosses multiply quickly beyond what a shape may
  // hold.
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({total, 2}));
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{2}));
  int64_t* to = c.out<int64_t>(0);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t n = starts[r + 1] - starts[r];
    most = std::max(most, n);
    for (int64_t i = 0; i < n; ++i) {
      *to++ = r;
      *to++ = i;
    }
  }
  c.out<int64_t>(2)[0] = rows;
  c.out<int64_t>(2)[1] = most;
  return OkStatus();
}

Status RunCross(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const bool hashed = op.bool_attr("hashed_output");
  if (hashed != (op.type_attr("out_type") == DType::kInt64)) {
    return InvalidArgument(
        "out_type must be int64 where the output is hashed, "
        "else string");
  }
  HR_ASSIGN_OR_RETURN(const auto columns, SparseAndDense(c));
  if (op.type_attr("internal_type") == DType::kString) {
    for (const Column& column : columns) {
      if (column.is_text()) continue;
      return InvalidArgument(
          "Input values should be of internal type 7 but "
          "received 9");
    }
  }
  HR_ASSIGN_OR_RETURN(const auto starts, StartsOf(columns));
  HR_RETURN_IF_ERROR(AllocateCrosses(c, starts));
  if (hashed) {
    HashAll(columns, op.int_attr("hash_key"), op.int_attr("num_buckets"),
            c.out<int64_t>(1));
  } else {
    JoinAll(columns, "_X_", c.out<std::string>(1));
  }
  return OkStatus();
}

Status RunCrossV2(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const auto columns, SparseAndDense(c));
  HR_ASSIGN_OR_RETURN(const auto starts, StartsOf(columns));
  HR_RETURN_IF_ERROR(AllocateCrosses(c, starts));
  JoinAll(columns, c.input(c.num_inputs() - 1).scalar<std::string>(),
          c.out<std::string>(1));
  return OkStatus();
}

Status RunCrossHashed(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const auto columns, SparseAndDense(c));
  const int scalars = c.num_inputs() - 3;
  const int64_t buckets = *c.in<int64_t>(scalars);
  const bool strong = *c.in<bool>(scalars + 1);
  const Tensor& salt = c.input(scalars + 2);
  const uint64_t key[2] = {static_cast<uint64_t>(salt.data<int64_t>()[0]),
                           static_cast<uint64_t>(salt.data<int64_t>()[1])};
  HR_ASSIGN_OR_RETURN(const auto starts, StartsOf(columns));
  HR_RETURN_IF_ERROR(AllocateCrosses(c, starts));
  // Upstream's numbers: of a sparse column's numbers the lower four bytes are
  // hashed, a dense column's stand for themselves.
  auto feature = [&](const Column& column, int64_t i) {
    std::string bytes;
    if (!column.is_text()) {
      const auto v = static_cast<uint64_t>(column.number(i));
      if (!column.sparse) return v;
      PutFixed32(&bytes, static_cast<uint32_t>(v));
    }
    const std::string& text = column.is_text() ? column.text(i) : bytes;
    return strong ? StrongHash64(key, text) : Fingerprint64(text);
  };
  int64_t* out = c.out<int64_t>(1);
  ForEachCross(columns, [&](absl::Span<const int64_t> at) {
    // Unlike the older ops this one begins with the first column and not with a
    // key.
    uint64_t hash = feature(columns[0], at[0]);
    for (size_t k = 1; k < columns.size(); ++k) {
      hash = Combine(hash, feature(columns[k], at[k]));
    }
    *out++ = BucketOf(hash, buckets);
  });
  return OkStatus();
}

Status CrossShape(ShapeContext& c) {
  c.set_output(0, Shape{-1, 2});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{2});
  return OkStatus();
}

Status CrossV2Shape(ShapeContext& c) {
  const Shape& separator = c.input(c.num_inputs() - 1);
  if (separator.known_rank() && separator.rank() != 0) {
    return InvalidArgument(
        "Input separator should be a scalar. Received a tensor of shape ",
        separator);
  }
  return CrossShape(c);
}

Status CrossHashedShape(ShapeContext& c) {
  const int n = c.num_inputs();
  HR_RETURN_IF_ERROR(CheckRank(c.input(n - 3), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(n - 2), 0));
  const Shape& salt = c.input(n - 1);
  HR_RETURN_IF_ERROR(CheckRank(salt, 1));
  if (!salt.CompatibleWith(Shape{2})) {
    return InvalidArgument("Input \"salt\" must have length 2 but has length ",
                           salt[0]);
  }
  return CrossShape(c);
}

OpBuilder CrossOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("indices: N * int64")
      .Input("values: sparse_types")
      .Input("shapes: N * int64")
      .Input("dense_inputs: dense_types")
      .Doc(doc);
  return b;
}

const bool registered = [] {
  CrossOp("SparseCross", "All crosses of columns, as texts or hashes.")
      .Output("output_indices: int64")
      .Output("output_values: out_type")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Attr("out_type: {int64, string}")
      .Attr("internal_type: {int64, string}")
      .Shape(CrossShape)
      .Cpu(ComputeOwn<RunCross>)
      .Register();
  CrossOp("SparseCrossV2", "All crosses of columns, as texts.")
      .Input("sep: string")
      .Output("output_indices: int64")
      .Output("output_values: string")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Shape(CrossV2Shape)
      .Cpu(ComputeOwn<RunCrossV2>)
      .Register();
  CrossOp("SparseCrossHashed", "All crosses of columns, as hashes.")
      .Input("num_buckets: int64")
      .Input("strong_hash: bool")
      .Input("salt: int64")
      .Output("output_indices: int64")
      .Output("output_values: int64")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Shape(CrossHashedShape)
      .Cpu(ComputeOwn<RunCrossHashed>)
      .Register();
  return true;
}();

// --- RaggedCross.

// The columns as `input_order` has them: R, S or D for each.
StatusOr<std::vector<Column>> InOrder(const KernelContext& c) {
  const ResolvedOp& op = c.op();
  const std::string& order = op.string_attr("input_order");
  const ArgRange values = op.input_range(0), splits = op.input_range(1);
  const ArgRange indices = op.input_range(2), sparse = op.input_range(3);
  const ArgRange shapes = op.input_range(4), dense = op.input_range(5);
  if (values.size() != splits.size() || indices.size() != sparse.size()) {
    return InvalidArgument("each ragged or sparse input needs all its parts");
  }
  std::vector<Column> columns;
  int r = 0, s = 0, d = 0;
  for (char kind : order) {
    const int position = static_cast<int>(columns.size());
    StatusOr<Column> column = InvalidArgument("Unexpected input_order value");
    if (kind == 'R' && r < values.size()) {
      column =
          RaggedColumn(c.input(values.begin + r), c.input(splits.begin + r));
      ++r;
    } else if (kind == 'S' && s < sparse.size()) {
      column =
          SparseColumn(c.input(indices.begin + s), c.input(sparse.begin + s),
                       c.input(shapes.begin + s), position);
      ++s;
    } else if (kind == 'D' && d < dense.size()) {
      column = DenseColumn(c.input(dense.begin + d), position);
      ++d;
    }
    HR_RETURN_IF_ERROR(column.status());
    columns.push_back(*std::move(column));
  }
  if (r != values.size() || s != sparse.size() || d != dense.size()) {
    return InvalidArgument("input_order \"", order,
                           "\" does not name every input once");
  }
  HR_RETURN_IF_ERROR(CheckRows(columns));
  return columns;
}

Status RunRaggedCross(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const bool hashed = op.bool_attr("hashed_output");
  if (hashed != (op.type_attr("out_values_type") == DType::kInt64)) {
    return InvalidArgument(
        "out_values_type must be int64 where the output is "
        "hashed, else string");
  }
  HR_ASSIGN_OR_RETURN(const auto columns, InOrder(c));
  HR_ASSIGN_OR_RETURN(const auto starts, StartsOf(columns));
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{starts.back()}));
  HR_RETURN_IF_ERROR(SetSplits(c, 1, starts));
  if (hashed) {
    HashAll(columns, op.int_attr("hash_key"), op.int_attr("num_buckets"),
            c.out<int64_t>(0));
  } else {
    JoinAll(columns, "_X_", c.out<std::string>(0));
  }
  return OkStatus();
}

Status RaggedCrossShape(ShapeContext& c) {
  c.set_output(0, Shape{-1});
  c.set_output(1, Shape{-1});
  return OkStatus();
}

HR_OP(RaggedCross)
    .Input("ragged_values: ragged_values_types")
    .Input("ragged_row_splits: ragged_splits_types")
    .Input("sparse_indices: Nsparse * int64")
    .Input("sparse_values: sparse_values_types")
    .Input("sparse_shape: Nsparse * int64")
    .Input("dense_inputs: dense_types")
    .Output("output_values: out_values_type")
    .Output("output_row_splits: out_row_splits_type")
    .Attr("Nsparse: int >= 0")
    .Attr("input_order: string")
    .Attr("hashed_output: bool")
    .Attr("num_buckets: int >= 0")
    .Attr("hash_key: int")
    .Attr("ragged_values_types: list({int64, string}) >= 0")
    .Attr("ragged_splits_types: list({int32, int64}) >= 0")
    .Attr("sparse_values_types: list({int64, string}) >= 0")
    .Attr("dense_types: list({int64, string}) >= 0")
    .Attr("out_values_type: {int64, string}")
    .Attr("out_row_splits_type: {int32, int64}")
    .Doc("All crosses of ragged, sparse and dense columns.")
    .Shape(RaggedCrossShape)
    .Cpu(ComputeOwn<RunRaggedCross>);

}  // namespace
}  // namespace headrace
