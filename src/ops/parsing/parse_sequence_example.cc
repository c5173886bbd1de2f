// ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample:
// serialised SequenceExamples into the tensors of their context and of their
// lists of features.
#include "op/op.h"
#include "ops/parsing/feature_lists.h"

namespace headrace {
namespace {

using Types = std::vector<DType>;
using Strings = std::vector<std::string>;

struct SequenceSpec {
  std::vector<Column> context, lists;
  std::vector<ColumnOutputs> context_outputs;
  std::vector<ListOutputs> list_outputs;
};

int FindOutput(const OpDef& def, StringView name) {
  for (size_t i = 0; i < def.outputs.size(); ++i) {
    if (def.outputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The first tensor of an output, -1 when the op has no such output.
int OutputOf(const ResolvedOp& op, StringView name) {
  const int i = FindOutput(op.def(), name);
  return i < 0 ? -1 : op.output_range(i).begin;
}

const Types* TypesOf(const ResolvedOp& op, StringView name) {
  return op.attrs().Get<Types>(name);
}

int At(int first, size_t i) {
  return first < 0 ? -1 : first + static_cast<int>(i);
}

Status CheckLengths(const ResolvedOp& op, StringView number, size_t types) {
  const int64_t* n = op.attrs().Get<int64_t>(number);
  if (n == nullptr || *n == static_cast<int64_t>(types)) return OkStatus();
  return InvalidArgument(number, " is ", *n, ", but there are ", types,
                         " types");
}

// Columns of the context or the lists by the attributes: sparse, dense and
// (in V2) ragged, the order of their keys.
Status AddColumns(const ResolvedOp& op, StringView prefix, StringView dense,
                  StringView shapes_name, std::vector<Column>* columns) {
  const auto& sparse = op.attr<Types>(absl::StrCat(prefix, "_sparse_types"));
  const auto& dense_types = op.attr<Types>(dense);
  const auto& shapes = op.attr<std::vector<Shape>>(shapes_name);
  HR_RETURN_IF_ERROR(
      CheckLengths(op, absl::StrCat("N", prefix, "_sparse"), sparse.size()));
  HR_RETURN_IF_ERROR(CheckLengths(op, absl::StrCat("N", prefix, "_dense"),
                                  dense_types.size()));
  if (shapes.size() != dense_types.size()) {
    return InvalidArgument("len(", shapes_name, ") is ", shapes.size(),
                           ", len(", dense, ") ", dense_types.size());
  }
  for (const DType t : sparse) {
    columns->push_back({.kind = Column::kSparse, .dtype = t});
  }
  for (size_t i = 0; i < dense_types.size(); ++i) {
    if (!shapes[i].fully_known()) {
      return InvalidArgument(shapes_name, "[", i,
                             "] is not fully defined: ", shapes[i]);
    }
    columns->push_back({.dtype = dense_types[i], .shape = shapes[i]});
  }
  const Types* values =
      TypesOf(op, absl::StrCat(prefix, "_ragged_value_types"));
  const Types* splits =
      TypesOf(op, absl::StrCat(prefix, "_ragged_split_types"));
  if (values == nullptr || splits == nullptr) return OkStatus();
  if (values->size() != splits->size()) {
    return InvalidArgument("the numbers of ", prefix,
                           "_ragged_value_types and their splits differ");
  }
  for (size_t i = 0; i < values->size(); ++i) {
    columns->push_back({.kind = Column::kRagged,
                        .dtype = (*values)[i],
                        .split_type = (*splits)[i]});
  }
  return OkStatus();
}

StatusOr<SequenceSpec> SpecOf(const ResolvedOp& op) {
  SequenceSpec spec;
  HR_RETURN_IF_ERROR(AddColumns(op, "context", "Tcontext_dense",
                                "context_dense_shapes", &spec.context));
  HR_RETURN_IF_ERROR(AddColumns(op, "feature_list", "feature_list_dense_types",
                                "feature_list_dense_shapes", &spec.lists));
  const auto output = [&](StringView name, size_t i) {
    return At(OutputOf(op, name), i);
  };
  size_t kinds[3] = {};
  for (const Column& column : spec.context) {
    const size_t i = kinds[column.kind]++;
    if (column.kind == Column::kDense) {
      spec.context_outputs.push_back(
          {.values = output("context_dense_values", i)});
    } else if (column.kind == Column::kSparse) {
      spec.context_outputs.push_back(
          {.values = output("context_sparse_values", i),
           .indices = output("context_sparse_indices", i),
           .shape = output("context_sparse_shapes", i)});
    } else {
      spec.context_outputs.push_back(
          {.values = output("context_ragged_values", i),
           .splits = output("context_ragged_row_splits", i)});
    }
  }
  size_t list_kinds[3] = {};
  for (const Column& column : spec.lists) {
    const size_t i = list_kinds[column.kind]++;
    if (column.kind == Column::kDense) {
      spec.list_outputs.push_back(
          {.values = output("feature_list_dense_values", i),
           .lengths = output("feature_list_dense_lengths", i)});
    } else if (column.kind == Column::kSparse) {
      spec.list_outputs.push_back(
          {.values = output("feature_list_sparse_values", i),
           .indices = output("feature_list_sparse_indices", i),
           .shape = output("feature_list_sparse_shapes", i)});
    } else {
      spec.list_outputs.push_back(
          {.values = output("feature_list_ragged_values", i),
           .outer_splits = output("feature_list_ragged_outer_splits", i),
           .inner_splits = output("feature_list_ragged_inner_splits", i)});
    }
  }
  return spec;
}

// ------------------------------------------------------------------ shapes

Status Shapes(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const SequenceSpec spec, SpecOf(c.op()));
  const Shape& batch = c.input(0);
  HR_RETURN_IF_ERROR(CheckRankAtMost(batch, 1));
  const bool known = batch.known_rank();
  const int64_t rank = known ? batch.rank() : 0;
  const auto width = [&](int64_t own) {
    return known ? rank + own : Shape::kUnknown;
  };
  const Shape vector{Shape::kUnknown};
  const auto sparse = [&](const auto& out, int64_t own) {
    c.set_output(out.values, vector);
    c.set_output(out.indices, Shape{Shape::kUnknown, width(own)});
    c.set_output(out.shape, Shape{width(own)});
  };
  for (size_t i = 0; i < spec.context.size(); ++i) {
    const Column& column = spec.context[i];
    const ColumnOutputs& out = spec.context_outputs[i];
    if (column.kind == Column::kSparse) {
      sparse(out, 1);
    } else if (column.kind == Column::kRagged) {
      c.set_output(out.values, vector);
      c.set_output(out.splits, vector);
    } else if (known) {
      c.set_output(out.values, batch.Concat(column.shape));
    }
  }
  for (size_t i = 0; i < spec.lists.size(); ++i) {
    const Column& column = spec.lists[i];
    const ListOutputs& out = spec.list_outputs[i];
    if (column.kind == Column::kSparse) {
      sparse(out, 2);
    } else if (column.kind == Column::kRagged) {
      c.set_output(out.values, vector);
      c.set_output(out.outer_splits, vector);
      c.set_output(out.inner_splits, vector);
    } else if (known) {
      c.set_output(out.values, batch.Concat(vector).Concat(column.shape));
      if (out.lengths >= 0) c.set_output(out.lengths, batch);
    }
  }
  return OkStatus();
}

// ----------------------------------------------------------------- parsing

struct SequenceBatch {
  absl::Span<const std::string> examples;
  absl::Span<const std::string> names;  // empty: none
  bool single = false;

  std::string Name(int64_t i) const {
    return names.empty() ? std::string("<unknown>") : names[i];
  }
};

Status ScanContext(const SequenceBatch& batch, int64_t i, StringView features,
                   absl::Span<const Column> columns, const ColumnIndex& index,
                   std::vector<std::vector<Cell>>* cells) {
  bool whole = true;
  const bool map = ForEachEntry(features, [&](StringView key, StringView v) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    Cell& cell = (*cells)[found->second][i];
    whole &= ParseFeature(v, &cell.feature) &&
             CountValues(cell.feature, &cell.count);
  });
  if (!map || !whole) {
    return InvalidArgument("Invalid protocol message input, example id: ",
                           batch.Name(i));
  }
  for (size_t k = 0; k < columns.size(); ++k) {
    const Column& column = columns[k];
    const Cell& cell = (*cells)[k][i];
    const bool missing = cell.feature.dtype == DType::kInvalid;
    if (!missing && cell.feature.dtype != column.dtype) {
      return InvalidArgument("Name: ", batch.Name(i),
                             ", Context feature: ", column.key,
                             ".  Data types don't match. "
                             "Expected type: ",
                             DTypeName(column.dtype));
    }
    if (column.kind != Column::kDense || cell.count == column.stride()) {
      continue;
    }
    if (missing && column.fallback.num_elements() > 0) continue;
    return InvalidArgument("Inconsistent max number of elements for feature ",
                           column.key, ": expected ", column.stride(),
                           ", but found ", cell.count);
  }
  return OkStatus();
}

Status AddStep(const SequenceBatch& batch, int64_t i, const Column& column,
               StringView feature, ListCells* lists) {
  Cell cell;
  if (!ParseFeature(feature, &cell.feature) ||
      !CountValues(cell.feature, &cell.count)) {
    return InvalidArgument("Invalid protocol message input, example id: ",
                           batch.Name(i));
  }
  const int64_t step =
      static_cast<int64_t>(lists->cells.size()) - lists->begins.back();
  const bool missing = cell.feature.dtype == DType::kInvalid;
  if (missing ? column.kind == Column::kDense
              : cell.feature.dtype != column.dtype) {
    return InvalidArgument(
        "Name: ", batch.Name(i), ", Feature list: ", column.key,
        ", Index: ", step,
        ".  Data types don't match. Expected type: ", DTypeName(column.dtype));
  }
  if (column.kind == Column::kDense && cell.count != column.stride()) {
    return InvalidArgument(
        "Name: ", batch.Name(i), ", Key: ", column.key, ", Index: ", step,
        ".  Number of values != expected.  values size: ", cell.count,
        " but output shape: ", column.shape);
  }
  lists->cells.push_back(cell);
  return OkStatus();
}

Status ScanLists(const SequenceBatch& batch, int64_t i,
                 StringView feature_lists, absl::Span<const Column> columns,
                 const ColumnIndex& index, std::vector<ListCells>* lists) {
  std::vector<StringView> found(columns.size());
  std::vector<bool> present(columns.size());
  if (!ForEachEntry(feature_lists, [&](StringView key, StringView value) {
        const auto at = index.find(key);
        if (at == index.end()) return;
        found[at->second] = value;
        present[at->second] = true;
      })) {
    return InvalidArgument("Invalid protocol message input, example id: ",
                           batch.Name(i));
  }
  for (size_t k = 0; k < columns.size(); ++k) {
    const Column& column = columns[k];
    ListCells& list = (*lists)[k];
    if (!present[k] && column.kind == Column::kDense && !column.may_miss) {
      return InvalidArgument(
          "Name: ", batch.Name(i), ", Feature list '", column.key,
          "' is required but could not be found.  Did you mean to include it "
          "in feature_list_dense_missing_assumed_empty or "
          "feature_list_dense_defaults?");
    }
    Status status;
    const bool whole =
        ForEachBytesField(found[k], [&](uint32_t field, StringView feature) {
          if (field == 1) status = AddStep(batch, i, column, feature, &list);
          return status.ok();
        });
    HR_RETURN_IF_ERROR(status);
    if (!whole) {
      return InvalidArgument("Invalid protocol message input, example id: ",
                             batch.Name(i));
    }
    list.begins.push_back(static_cast<int64_t>(list.cells.size()));
  }
  return OkStatus();
}

Status Parse(KernelContext& c, const SequenceBatch& batch,
             const SequenceSpec& spec) {
  const int64_t n = batch.examples.size();
  std::vector<std::vector<Cell>> context(spec.context.size(),
                                         std::vector<Cell>(n));
  std::vector<ListCells> lists(spec.lists.size());
  const ColumnIndex context_index = IndexColumns(spec.context);
  const ColumnIndex list_index = IndexColumns(spec.lists);
  for (int64_t i = 0; i < n; ++i) {
    StringView features, feature_lists;
    if (!ForEachBytesField(batch.examples[i], [&](uint32_t f, StringView b) {
          if (f == 1) features = b;
          if (f == 2) feature_lists = b;
          return true;
        })) {
      return InvalidArgument("Invalid protocol message input, example id: ",
                             batch.Name(i));
    }
    HR_RETURN_IF_ERROR(
        ScanContext(batch, i, features, spec.context, context_index, &context));
    HR_RETURN_IF_ERROR(
        ScanLists(batch, i, feature_lists, spec.lists, list_index, &lists));
  }
  for (size_t k = 0; k < spec.context.size(); ++k) {
    HR_RETURN_IF_ERROR(EmitColumn(c, spec.context[k], context[k], !batch.single,
                                  spec.context_outputs[k]));
  }
  for (size_t k = 0; k < spec.lists.size(); ++k) {
    HR_RETURN_IF_ERROR(EmitLists(c, spec.lists[k], lists[k], !batch.single,
                                 spec.list_outputs[k]));
  }
  return OkStatus();
}

// -------------------------------------------------------------------- keys

// Keys of a kind into the columns of that kind, in their order.
Status SetKeys(absl::Span<const std::string> keys, StringView name,
               Column::Kind kind, std::vector<Column>* columns) {
  size_t next = 0, wanted = 0;
  for (Column& column : *columns) {
    if (column.kind != kind) continue;
    ++wanted;
    if (next < keys.size()) column.key = keys[next++];
  }
  if (wanted == keys.size()) return OkStatus();
  return InvalidArgument("Expected len(", name, ") == ", wanted,
                         " but got: ", keys.size());
}

Strings ScalarStrings(const KernelContext& c, StringView input) {
  Strings out;
  const ArgRange range = c.op().input_range(input);
  for (int i = range.begin; i < range.end; ++i) {
    for (const std::string& s : c.input(i).span<std::string>()) {
      out.push_back(s);
    }
  }
  return out;
}

// The four lists of keys, from attributes or inputs of those names.
template <typename Get>
Status SetAllKeys(Get get, SequenceSpec* spec) {
  HR_RETURN_IF_ERROR(SetKeys(get("context_sparse_keys"), "context_sparse_keys",
                             Column::kSparse, &spec->context));
  HR_RETURN_IF_ERROR(SetKeys(get("context_dense_keys"), "context_dense_keys",
                             Column::kDense, &spec->context));
  HR_RETURN_IF_ERROR(SetKeys(get("feature_list_sparse_keys"),
                             "feature_list_sparse_keys", Column::kSparse,
                             &spec->lists));
  return SetKeys(get("feature_list_dense_keys"), "feature_list_dense_keys",
                 Column::kDense, &spec->lists);
}

void AllowMissing(absl::Span<const std::string> keys, SequenceSpec* spec) {
  for (Column& column : spec->lists) {
    for (const std::string& key : keys) column.may_miss |= column.key == key;
  }
}

Status SetFallbacks(const KernelContext& c, SequenceSpec* spec) {
  const ArgRange range = c.op().input_range("context_dense_defaults");
  int i = range.begin;
  for (Column& column : spec->context) {
    if (column.kind != Column::kDense) continue;
    column.fallback = c.input(i++);
    HR_RETURN_IF_ERROR(CheckDenseColumn(column, i - 1 - range.begin));
  }
  return OkStatus();
}

StatusOr<SequenceBatch> SequencesOf(const Tensor& serialized,
                                    const Tensor& names) {
  if (serialized.rank() > 1) {
    return InvalidArgument(
        "Expected serialized to be a vector or scalar, got "
        "shape: ",
        serialized.shape());
  }
  SequenceBatch batch;
  batch.examples = serialized.span<std::string>();
  batch.single = serialized.rank() == 0;
  if (names.num_elements() == 0) return batch;
  if (names.num_elements() != serialized.num_elements()) {
    return InvalidArgument("Expected len(debug_name) == len(serialized), got ",
                           names.num_elements(), " and ",
                           serialized.num_elements());
  }
  batch.names = names.span<std::string>();
  return batch;
}

Status RunSequencesV2(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c.op()));
  const auto get = [&](StringView name) { return ScalarStrings(c, name); };
  HR_RETURN_IF_ERROR(SetAllKeys(get, &spec));
  HR_RETURN_IF_ERROR(SetKeys(get("context_ragged_keys"), "context_ragged_keys",
                             Column::kRagged, &spec.context));
  HR_RETURN_IF_ERROR(SetKeys(get("feature_list_ragged_keys"),
                             "feature_list_ragged_keys", Column::kRagged,
                             &spec.lists));
  const Tensor& may_miss = c.input(
      c.op().input_range("feature_list_dense_missing_assumed_empty").begin);
  int64_t dense = 0;
  for (Column& column : spec.lists) {
    if (column.kind != Column::kDense) continue;
    if (dense < may_miss.num_elements()) {
      column.may_miss = may_miss.data<bool>()[dense];
    }
    ++dense;
  }
  if (dense != may_miss.num_elements()) {
    return InvalidArgument(
        "Expected len(feature_list_dense_missing_assumed_empty) == ", dense,
        " but got: ", may_miss.num_elements());
  }
  HR_RETURN_IF_ERROR(SetFallbacks(c, &spec));
  HR_ASSIGN_OR_RETURN(const SequenceBatch batch,
                      SequencesOf(c.input(0), c.input(1)));
  return Parse(c, batch, spec);
}

Status RunSequencesV1(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c.op()));
  const auto get = [&](StringView name) { return c.op().attr<Strings>(name); };
  HR_RETURN_IF_ERROR(SetAllKeys(get, &spec));
  AllowMissing(get("feature_list_dense_missing_assumed_empty"), &spec);
  HR_RETURN_IF_ERROR(SetFallbacks(c, &spec));
  HR_ASSIGN_OR_RETURN(const SequenceBatch batch,
                      SequencesOf(c.input(0), c.input(1)));
  return Parse(c, batch, spec);
}

Status RunSingleSequence(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SequenceSpec spec, SpecOf(c.op()));
  const auto get = [&](StringView name) { return ScalarStrings(c, name); };
  HR_RETURN_IF_ERROR(SetAllKeys(get, &spec));
  AllowMissing(get("feature_list_dense_missing_assumed_empty"), &spec);
  HR_RETURN_IF_ERROR(SetFallbacks(c, &spec));
  if (c.input(0).rank() != 0) {
    return InvalidArgument("Expected serialized to be a scalar, got shape: ",
                           c.input(0).shape());
  }
  HR_ASSIGN_OR_RETURN(
      const SequenceBatch batch,
      SequencesOf(c.input(0), c.input(c.op().input_range("debug_name").begin)));
  return Parse(c, batch, spec);
}

HR_OP(ParseSequenceExample)
    .Input("serialized: string")
    .Input("debug_name: string")
    .Input("context_dense_defaults: Tcontext_dense")
    .Output("context_sparse_indices: Ncontext_sparse * int64")
    .Output("context_sparse_values: context_sparse_types")
    .Output("context_sparse_shapes: Ncontext_sparse * int64")
    .Output("context_dense_values: Tcontext_dense")
    .Output("feature_list_sparse_indices: Nfeature_list_sparse * int64")
    .Output("feature_list_sparse_values: feature_list_sparse_types")
    .Output("feature_list_sparse_shapes: Nfeature_list_sparse * int64")
    .Output("feature_list_dense_values: feature_list_dense_types")
    .Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
    .Attr("feature_list_dense_missing_assumed_empty: list(string) >= 0")
    .Attr("context_sparse_keys: list(string) >= 0")
    .Attr("context_dense_keys: list(string) >= 0")
    .Attr("feature_list_sparse_keys: list(string) >= 0")
    .Attr("feature_list_dense_keys: list(string) >= 0")
    .Attr("Ncontext_sparse: int >= 0 = 0")
    .Attr("Ncontext_dense: int >= 0 = 0")
    .Attr("Nfeature_list_sparse: int >= 0 = 0")
    .Attr("Nfeature_list_dense: int >= 0 = 0")
    .Attr("context_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr("Tcontext_dense: list({float, int64, string}) >= 0 = []")
    .Attr("feature_list_dense_types: list({float, int64, string}) >= 0 = []")
    .Attr("context_dense_shapes: list(shape) >= 0 = []")
    .Attr("feature_list_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
    .Doc("Serialised SequenceExamples into dense and sparse tensors.")
    .Shape(Shapes)
    .Cpu(ComputeOwn<RunSequencesV1>);

HR_OP(ParseSequenceExampleV2)
    .Input("serialized: string")
    .Input("debug_name: string")
    .Input("context_sparse_keys: string")
    .Input("context_dense_keys: string")
    .Input("context_ragged_keys: string")
    .Input("feature_list_sparse_keys: string")
    .Input("feature_list_dense_keys: string")
    .Input("feature_list_ragged_keys: string")
    .Input("feature_list_dense_missing_assumed_empty: bool")
    .Input("context_dense_defaults: Tcontext_dense")
    .Output("context_sparse_indices: Ncontext_sparse * int64")
    .Output("context_sparse_values: context_sparse_types")
    .Output("context_sparse_shapes: Ncontext_sparse * int64")
    .Output("context_dense_values: Tcontext_dense")
    .Output("context_ragged_values: context_ragged_value_types")
    .Output("context_ragged_row_splits: context_ragged_split_types")
    .Output("feature_list_sparse_indices: Nfeature_list_sparse * int64")
    .Output("feature_list_sparse_values: feature_list_sparse_types")
    .Output("feature_list_sparse_shapes: Nfeature_list_sparse * int64")
    .Output("feature_list_dense_values: feature_list_dense_types")
    .Output("feature_list_dense_lengths: Nfeature_list_dense * int64")
    .Output("feature_list_ragged_values: feature_list_ragged_value_types")
    .Output("feature_list_ragged_outer_splits: feature_list_ragged_split_types")
    .Output("feature_list_ragged_inner_splits: feature_list_ragged_split_types")
    .Attr("Ncontext_sparse: int >= 0 = 0")
    .Attr("Tcontext_dense: list({float, int64, string}) >= 0 = []")
    .Attr("context_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr("context_ragged_value_types: list({float, int64, string}) >= 0 = []")
    .Attr("context_ragged_split_types: list({int32, int64}) >= 0 = []")
    .Attr("context_dense_shapes: list(shape) >= 0 = []")
    .Attr("Nfeature_list_sparse: int >= 0 = 0")
    .Attr("Nfeature_list_dense: int >= 0 = 0")
    .Attr("feature_list_dense_types: list({float, int64, string}) >= 0 = []")
    .Attr("feature_list_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr(
        "feature_list_ragged_value_types: list({float, int64, string}) >= 0 = "
        "[]")
    .Attr("feature_list_ragged_split_types: list({int32, int64}) >= 0 = []")
    .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
    .Doc("Serialised SequenceExamples into dense, sparse and ragged tensors.")
    .Shape(Shapes)
    .Cpu(ComputeOwn<RunSequencesV2>);

HR_OP(ParseSingleSequenceExample)
    .Input("serialized: string")
    .Input("feature_list_dense_missing_assumed_empty: string")
    .Input("context_sparse_keys: Ncontext_sparse * string")
    .Input("context_dense_keys: Ncontext_dense * string")
    .Input("feature_list_sparse_keys: Nfeature_list_sparse * string")
    .Input("feature_list_dense_keys: Nfeature_list_dense * string")
    .Input("context_dense_defaults: Tcontext_dense")
    .Input("debug_name: string")
    .Output("context_sparse_indices: Ncontext_sparse * int64")
    .Output("context_sparse_values: context_sparse_types")
    .Output("context_sparse_shapes: Ncontext_sparse * int64")
    .Output("context_dense_values: Tcontext_dense")
    .Output("feature_list_sparse_indices: Nfeature_list_sparse * int64")
    .Output("feature_list_sparse_values: feature_list_sparse_types")
    .Output("feature_list_sparse_shapes: Nfeature_list_sparse * int64")
    .Output("feature_list_dense_values: feature_list_dense_types")
    .Attr("Ncontext_sparse: int >= 0 = 0")
    .Attr("Ncontext_dense: int >= 0 = 0")
    .Attr("Nfeature_list_sparse: int >= 0 = 0")
    .Attr("Nfeature_list_dense: int >= 0 = 0")
    .Attr("context_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr("Tcontext_dense: list({float, int64, string}) >= 0 = []")
    .Attr("feature_list_dense_types: list({float, int64, string}) >= 0 = []")
    .Attr("context_dense_shapes: list(shape) >= 0 = []")
    .Attr("feature_list_sparse_types: list({float, int64, string}) >= 0 = []")
    .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
    .Doc("One serialised SequenceExample into dense and sparse tensors.")
    .Shape(Shapes)
    .Cpu(ComputeOwn<RunSingleSequence>);

}  // namespace
}  // namespace headrace
