// ParseExample, ParseExampleV2, ParseSingleExample: serialised Examples into
// dense, sparse and ragged columns. First every example's features are found
// and counted, then each column's tensors are made at their full size.
#include <atomic>

#include "absl/strings/escaping.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "op/op.h"
#include "op/vectorize.h"
#include "ops/parsing/columns.h"

namespace headrace {
namespace {

// An estimate that decides how work is shared out.
constexpr double kNanosecondsPerExample = 600;

struct Spec {
  std::vector<Column> columns;
  std::vector<ColumnOutputs> outputs;
};

using Types = std::vector<DType>;

// What the attributes say, in the order of the outputs: sparse, dense, ragged.
// Keys and fallbacks are left empty.
StatusOr<Spec> SpecOfAttrs(const ResolvedOp& op, StringView num_sparse,
                           bool ragged) {
  Spec spec;
  const auto& sparse = op.attr<Types>("sparse_types");
  const auto& dense = op.attr<Types>("Tdense");
  const auto& shapes = op.attr<std::vector<Shape>>("dense_shapes");
  if (op.int_attr(num_sparse) != static_cast<int64_t>(sparse.size())) {
    return InvalidArgument("len(sparse_keys) != len(sparse_types)");
  }
  if (shapes.size() != dense.size()) {
    return InvalidArgument("len(dense_keys) != len(dense_shapes)");
  }
  for (size_t i = 0; i < sparse.size(); ++i) {
    const int at = static_cast<int>(i);
    spec.columns.push_back({.kind = Column::kSparse, .dtype = sparse[i]});
    spec.outputs.push_back({.values = op.output_range(1).begin + at,
                            .indices = op.output_range(0).begin + at,
                            .shape = op.output_range(2).begin + at});
  }
  for (size_t i = 0; i < dense.size(); ++i) {
    const int at = static_cast<int>(i);
    spec.columns.push_back({.dtype = dense[i], .shape = shapes[i]});
    spec.outputs.push_back({.values = op.output_range(3).begin + at});
  }
  if (!ragged) return spec;
  const auto& values = op.attr<Types>("ragged_value_types");
  const auto& splits = op.attr<Types>("ragged_split_types");
  if (values.size() != splits.size()) {
    return InvalidArgument(
        "len(ragged_value_types) != "
        "len(ragged_split_types)");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i);
    spec.columns.push_back(
        {.kind = Column::kRagged, .dtype = values[i], .split_type = splits[i]});
    spec.outputs.push_back({.values = op.output_range(4).begin + at,
                            .splits = op.output_range(5).begin + at});
  }
  return spec;
}

// Shapes of the outputs for examples of shape `batch`.
Status SetShapes(ShapeContext& c, const Spec& spec, const Shape& batch) {
  const bool known = batch.known_rank();
  const int64_t rank = known ? batch.rank() : Shape::kUnknown;
  for (size_t i = 0; i < spec.columns.size(); ++i) {
    const Column& column = spec.columns[i];
    const ColumnOutputs& out = spec.outputs[i];
    if (column.kind == Column::kDense) {
      if (known) c.set_output(out.values, batch.Concat(column.shape));
      continue;
    }
    c.set_output(out.values, Shape{Shape::kUnknown});
    if (column.kind == Column::kRagged) {
      Shape splits{Shape::kUnknown};
      if (rank == 1 && batch[0] >= 0) splits.set_dim(0, batch[0] + 1);
      c.set_output(out.splits, splits);
      continue;
    }
    const int64_t width = known ? rank + 1 : Shape::kUnknown;
    c.set_output(out.indices, Shape{Shape::kUnknown, width});
    c.set_output(out.shape, Shape{width});
  }
  return OkStatus();
}

// The input that a parse reads, and how it names what is wrong.
struct Batch {
  absl::Span<const std::string> examples;
  absl::Span<const std::string> names;  // empty: none
  bool single = false;                  // one example, a scalar

  std::string Prefix(int64_t i) const {
    if (single) return "";
    return absl::StrCat("Name: ", names.empty() ? "<unknown>" : names[i], ", ");
  }
  std::string Where(StringView key, int64_t i) const {
    if (single) return absl::StrCat("Key: ", key, ".  ");
    return absl::StrCat(Prefix(i), "Key: ", key, ", Index: ", i, ".  ");
  }
};

Status CheckType(const Batch& batch, int64_t i, const Column& column,
                 DType actual) {
  if (column.dtype == actual) return OkStatus();
  if (column.kind == Column::kDense) {
    return InvalidArgument(
        batch.Where(column.key, i),
        "Data types don't match. Data type: ", DTypeName(actual),
        " but expected type: ", DTypeName(column.dtype));
  }
  return InvalidArgument(
      batch.Where(column.key, i),
      "Data types don't match. Expected type: ", DTypeName(column.dtype),
      ", Actual type: ", DTypeName(actual));
}

Status CheckCount(const Batch& batch, int64_t i, const Column& column,
                  int64_t count) {
  if (column.kind != Column::kDense) return OkStatus();
  const int64_t stride = column.stride();
  if (column.variable()) {
    if (stride == 0 ? count == 0 : count % stride == 0) return OkStatus();
    return InvalidArgument(
        batch.Where(column.key, i), "Number of ", DTypeName(column.dtype),
        " values is not a multiple of stride length. Saw ", count,
        " values but output shape is: ", column.shape);
  }
  if (count == stride) return OkStatus();
  return InvalidArgument(batch.Where(column.key, i), "Number of ",
                         DTypeName(column.dtype),
                         " values != expected.  Values size: ", count,
                         " but output shape: ", column.shape);
}

// The cells of all columns, one column behind the other.
class Cells {
 public:
  Cells(size_t columns, size_t examples)
      : examples_(examples), cells_(columns * examples) {}
  Cell& at(size_t column, size_t example) {
    return cells_[column * examples_ + example];
  }
  absl::Span<const Cell> of(size_t column) const {
    return absl::MakeConstSpan(cells_).subspan(column * examples_, examples_);
  }

 private:
  const size_t examples_;
  std::vector<Cell> cells_;
};

// Finds what the columns ask of example `i`.
Status Scan(const Batch& batch, int64_t i, absl::Span<const Column> columns,
            const ColumnIndex& index, Cells* cells) {
  const std::string& example = batch.examples[i];
  Status status;
  bool whole =
      ForEachFeatureOfExample(example, [&](StringView key, StringView value) {
        const auto found = index.find(key);
        if (found == index.end() || !status.ok()) return;
        Cell& cell = cells->at(found->second, i);
        if (!ParseFeature(value, &cell.feature) ||
            !CountValues(cell.feature, &cell.count)) {
          status = InvalidArgument(batch.Where(key, i),
                                   "Can't parse serialized Example.");
        }
      });
  if (!whole) {
    return InvalidArgument("Could not parse example input, value: '",
                           absl::CHexEscape(example.substr(0, 200)), "'");
  }
  HR_RETURN_IF_ERROR(status);
  for (size_t k = 0; k < columns.size(); ++k) {
    const Column& column = columns[k];
    const Cell& cell = cells->at(k, i);
    if (cell.feature.dtype != DType::kInvalid) {
      HR_RETURN_IF_ERROR(CheckType(batch, i, column, cell.feature.dtype));
      HR_RETURN_IF_ERROR(CheckCount(batch, i, column, cell.count));
    } else if (column.kind == Column::kDense && !column.variable() &&
               column.fallback.num_elements() == 0 && column.stride() > 0) {
      return InvalidArgument(batch.Prefix(i), "Feature: ", column.key,
                             " (data type: ", DTypeName(column.dtype),
                             ") is required but could not be found.");
    }
  }
  return OkStatus();
}

// Of the errors of several examples, that of the first.
class FirstBad {
 public:
  void Note(int64_t example, Status error) {
    MutexLock lock(mutex_);
    if (!error_.ok() && example_ <= example) return;
    example_ = example;
    error_ = std::move(error);
  }
  Status status() const {
    MutexLock lock(mutex_);
    return error_;
  }

 private:
  mutable Mutex mutex_;
  int64_t example_ ABSL_GUARDED_BY(mutex_) = 0;
  Status error_ ABSL_GUARDED_BY(mutex_);
};

Status Parse(KernelContext& c, const Batch& batch, const Spec& spec) {
  const int64_t n = batch.examples.size();
  Cells cells(spec.columns.size(), n);
  const ColumnIndex index = IndexColumns(spec.columns);
  FirstBad bad;
  ParallelFor(n, kNanosecondsPerExample, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Status s = Scan(batch, i, spec.columns, index, &cells);
      if (s.ok()) continue;
      // What is behind `i` in this part of the work cannot be the first error.
      return bad.Note(i, std::move(s));
    }
  });
  HR_RETURN_IF_ERROR(bad.status());
  for (size_t k = 0; k < spec.columns.size(); ++k) {
    HR_RETURN_IF_ERROR(EmitColumn(c, spec.columns[k], cells.of(k),
                                  !batch.single, spec.outputs[k]));
  }
  return OkStatus();
}

// Gives dense columns, which begin at `first`, their fallbacks.
Status SetFallbacks(const KernelContext& c, StringView input, size_t first,
                    Spec* spec) {
  const ArgRange range = c.op().input_range(input);
  for (int i = 0; i < range.size(); ++i) {
    Column& column = spec->columns[first + i];
    column.fallback = c.input(range.begin + i);
    HR_RETURN_IF_ERROR(CheckDenseColumn(column, i));
  }
  return OkStatus();
}

StatusOr<Batch> BatchOf(const Tensor& serialized, const Tensor& names) {
  Batch batch;
  batch.examples = serialized.span<std::string>();
  batch.single = serialized.rank() == 0;
  if (names.num_elements() == 0) return batch;
  if (names.shape() != serialized.shape()) {
    return InvalidArgument(
        "Expected names have the same shape as serialized: name.shape=",
        names.shape(), ", serialized.shape=", serialized.shape());
  }
  batch.names = names.span<std::string>();
  return batch;
}

// ---------------------------------------------------------- ParseExampleV2

Status ShapesV2(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Spec spec,
                      SpecOfAttrs(c.op(), "num_sparse", /*ragged=*/true));
  return SetShapes(c, spec, c.input(0));
}

// Keys of a kind, from a vector, into the columns from `first` on.
Status SetKeys(const Tensor& keys, StringView name, StringView count_name,
               size_t first, size_t count, Spec* spec) {
  if (keys.rank() != 1) {
    return InvalidArgument("Expected ", name,
                           " to be a vector, got shape: ", keys.shape());
  }
  if (keys.num_elements() != static_cast<int64_t>(count)) {
    return InvalidArgument("Expected len(", name, ") == ", count_name,
                           " but got: ", keys.num_elements(), " vs. ", count);
  }
  for (size_t i = 0; i < count; ++i) {
    spec->columns[first + i].key = keys.data<std::string>()[i];
  }
  return OkStatus();
}

Status RunV2(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(Spec spec, SpecOfAttrs(op, "num_sparse", true));
  if (c.input(0).rank() > 1) {
    return InvalidArgument(
        "Expected serialized to be a scalar or vector, got "
        "shape: ",
        c.input(0).shape());
  }
  const size_t sparse = op.attr<Types>("sparse_types").size();
  const size_t dense = op.attr<Types>("Tdense").size();
  const size_t ragged = spec.columns.size() - sparse - dense;
  HR_RETURN_IF_ERROR(
      SetKeys(c.input(2), "sparse_keys", "num_sparse", 0, sparse, &spec));
  HR_RETURN_IF_ERROR(
      SetKeys(c.input(3), "dense_keys", "num_dense", sparse, dense, &spec));
  HR_RETURN_IF_ERROR(SetKeys(c.input(4), "ragged_keys", "num_ragged",
                             sparse + dense, ragged, &spec));
  HR_RETURN_IF_ERROR(SetFallbacks(c, "dense_defaults", sparse, &spec));
  HR_ASSIGN_OR_RETURN(const Batch batch, BatchOf(c.input(0), c.input(1)));
  return Parse(c, batch, spec);
}

HR_OP(ParseExampleV2)
    .Input("serialized: string")
    .Input("names: string")
    .Input("sparse_keys: string")
    .Input("dense_keys: string")
    .Input("ragged_keys: string")
    .Input("dense_defaults: Tdense")
    .Output("sparse_indices: num_sparse * int64")
    .Output("sparse_values: sparse_types")
    .Output("sparse_shapes: num_sparse * int64")
    .Output("dense_values: Tdense")
    .Output("ragged_values: ragged_value_types")
    .Output("ragged_row_splits: ragged_split_types")
    .Attr("Tdense: list({float, int64, string}) >= 0")
    .Attr("num_sparse: int >= 0")
    .Attr("sparse_types: list({float, int64, string}) >= 0")
    .Attr("ragged_value_types: list({float, int64, string}) >= 0")
    .Attr("ragged_split_types: list({int32, int64}) >= 0")
    .Attr("dense_shapes: list(shape) >= 0")
    .Doc("Serialised Examples into dense, sparse and ragged tensors.")
    .Shape(ShapesV2)
    .Vectorize(VectorizeInLoop)
    .Cpu(ComputeOwn<RunV2>);

// ------------------------------------------------------------ ParseExample

Status ShapesV1(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Spec spec,
                      SpecOfAttrs(c.op(), "Nsparse", /*ragged=*/false));
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  return SetShapes(
      c, spec, c.input(0).known_rank() ? c.input(0) : Shape{Shape::kUnknown});
}

// Keys given as scalars, one an input.
Status SetScalarKeys(const KernelContext& c, StringView input, size_t first,
                     size_t count, Spec* spec) {
  const ArgRange range = c.op().input_range(input);
  if (range.size() != static_cast<int>(count)) {
    return InvalidArgument("len(", input, ") is ", range.size(), ", its types ",
                           count);
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor& key = c.input(range.begin + static_cast<int>(i));
    if (key.rank() != 0) {
      return InvalidArgument("Expected ", input, "[", i,
                             "] to be a scalar, got shape: ", key.shape());
    }
    spec->columns[first + i].key = key.scalar<std::string>();
  }
  return OkStatus();
}

Status RunV1(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(Spec spec, SpecOfAttrs(c.op(), "Nsparse", false));
  const size_t sparse = c.op().attr<Types>("sparse_types").size();
  HR_RETURN_IF_ERROR(SetScalarKeys(c, "sparse_keys", 0, sparse, &spec));
  HR_RETURN_IF_ERROR(SetScalarKeys(c, "dense_keys", sparse,
                                   spec.columns.size() - sparse, &spec));
  HR_RETURN_IF_ERROR(SetFallbacks(c, "dense_defaults", sparse, &spec));
  HR_ASSIGN_OR_RETURN(const Batch batch, BatchOf(c.input(0), c.input(1)));
  return Parse(c, batch, spec);
}

HR_OP(ParseExample)
    .Input("serialized: string")
    .Input("names: string")
    .Input("sparse_keys: Nsparse * string")
    .Input("dense_keys: Ndense * string")
    .Input("dense_defaults: Tdense")
    .Output("sparse_indices: Nsparse * int64")
    .Output("sparse_values: sparse_types")
    .Output("sparse_shapes: Nsparse * int64")
    .Output("dense_values: Tdense")
    .Attr("Nsparse: int >= 0")
    .Attr("Ndense: int >= 0")
    .Attr("sparse_types: list({float, int64, string}) >= 0")
    .Attr("Tdense: list({float, int64, string}) >= 0")
    .Attr("dense_shapes: list(shape) >= 0")
    .Doc("Serialised Examples into dense and sparse tensors.")
    .Shape(ShapesV1)
    .Cpu(ComputeOwn<RunV1>);

// ------------------------------------------------------ ParseSingleExample

Status ShapesSingle(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Spec spec,
                      SpecOfAttrs(c.op(), "num_sparse", /*ragged=*/false));
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 0));
  return SetShapes(c, spec, Shape());
}

Status RunSingle(KernelContext& c) {
  const ResolvedOp& op = c.op();
  HR_ASSIGN_OR_RETURN(Spec spec, SpecOfAttrs(op, "num_sparse", false));
  const size_t sparse = op.attr<Types>("sparse_types").size();
  std::vector<std::string> keys =
      op.attr<std::vector<std::string>>("sparse_keys");
  const auto& dense = op.attr<std::vector<std::string>>("dense_keys");
  if (keys.size() != sparse ||
      keys.size() + dense.size() != spec.columns.size()) {
    return InvalidArgument("the numbers of keys and types differ");
  }
  keys.insert(keys.end(), dense.begin(), dense.end());
  for (size_t i = 0; i < keys.size(); ++i) spec.columns[i].key = keys[i];
  HR_RETURN_IF_ERROR(SetFallbacks(c, "dense_defaults", sparse, &spec));
  HR_ASSIGN_OR_RETURN(const Batch batch,
                      BatchOf(c.input(0), Tensor::Vector<std::string>({})));
  return Parse(c, batch, spec);
}

HR_OP(ParseSingleExample)
    .Input("serialized: string")
    .Input("dense_defaults: Tdense")
    .Output("sparse_indices: num_sparse * int64")
    .Output("sparse_values: sparse_types")
    .Output("sparse_shapes: num_sparse * int64")
    .Output("dense_values: Tdense")
    .Attr("num_sparse: int >= 0")
    .Attr("sparse_keys: list(string) >= 0")
    .Attr("dense_keys: list(string) >= 0")
    .Attr("sparse_types: list({float, int64, string}) >= 0")
    .Attr("Tdense: list({float, int64, string}) >= 0")
    .Attr("dense_shapes: list(shape) >= 0")
    .Doc("One serialised Example into dense and sparse tensors.")
    .Shape(ShapesSingle)
    .Vectorize(VectorizeInLoop)
    .Cpu(ComputeOwn<RunSingle>);

}  // namespace
}  // namespace headrace
