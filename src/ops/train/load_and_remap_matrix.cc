// LoadAndRemapMatrix: rows and columns of a checkpoint's matrix, in another
// order, and values of the caller's for those that are new.
#include <algorithm>

#include "base/files/files.h"
#include "base/hash_map.h"
#include "formats/checkpoint_reader.h"
#include "op/op.h"
#include "op/reach.h"
#include "tensor/dtype_proto.h"

namespace headrace {
namespace {

// Refuses what is taken twice.
Status CheckTakenOnce(absl::Span<const int64_t> ids) {
  HashMap<int64_t, size_t> taken;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) continue;
    const auto [at, is_new] = taken.emplace(ids[i], i);
    if (is_new) continue;
    return Unimplemented("Old ID ", ids[i], " is mapped to both new ID ",
                         at->second, " and ", i, ", which is not supported.");
  }
  return OkStatus();
}

// What is asked of the matrix.
struct Remapping {
  absl::Span<const int64_t> rows, columns;  // no columns: all as they are
  int64_t width = 0;                        // of the output

  // The stored column that column k of the output is.
  int64_t Column(int64_t k) const { return columns.empty() ? k : columns[k]; }
};

StatusOr<Remapping> RemappingOf(const KernelContext& c) {
  const int64_t num_rows = c.op().int_attr("num_rows");
  Remapping r{c.input(2).span<int64_t>(), c.input(3).span<int64_t>(),
              c.op().int_attr("num_cols")};
  const int64_t rows = static_cast<int64_t>(r.rows.size());
  const int64_t columns = static_cast<int64_t>(r.columns.size());
  if (rows != num_rows) {
    return InvalidArgument("Size of row_remapping is ", rows,
                           " instead of being equal to num_rows=", num_rows);
  }
  if (columns != 0 && columns != r.width) {
    return InvalidArgument("Provided col_remapping, but its size is ", columns,
                           " instead of being equal to num_cols=", r.width);
  }
  HR_RETURN_IF_ERROR(CheckTakenOnce(r.rows));
  HR_RETURN_IF_ERROR(CheckTakenOnce(r.columns));
  return r;
}

// How many columns the stored matrix has.
StatusOr<int64_t> StoredWidth(const CheckpointReader& reader,
                              const std::string& name, const Remapping& r) {
  HR_ASSIGN_OR_RETURN(const CheckpointTensor t, reader.Lookup(name));
  if (t.dtype != tensorflow::DT_FLOAT) {
    return InvalidArgument("Tensor ", name, " has invalid type ",
                           DTypeName(static_cast<DType>(t.dtype)),
                           " instead of expected type float");
  }
  const Shape shape(t.dims);
  if (shape.rank() != 2) {
    return InvalidArgument("Tensor ", name, " has shape ", shape,
                           " of invalid rank ", shape.rank(),
                           " instead of expected shape of rank 2.");
  }
  if (r.columns.empty() && shape[1] != r.width) {
    return InvalidArgument("Tensor ", name, " has shape ", shape,
                           ", where the size of its 2nd dimension is ",
                           shape[1],
                           " instead of being equal to num_cols=", r.width);
  }
  for (const int64_t row : r.rows) {
    if (row < shape[0]) continue;
    return InvalidArgument("row_remapping takes row ", row, " of tensor ", name,
                           " of shape ", shape);
  }
  for (const int64_t column : r.columns) {
    if (column < shape[1]) continue;
    return InvalidArgument("col_remapping takes column ", column, " of tensor ",
                           name, " of shape ", shape);
  }
  HR_RETURN_IF_ERROR(reader.CheckSize(name, t));
  return shape[1];
}

// Copies the stored rows that are wanted, so many at a time, to their places.
Status PutStored(KernelContext& c, const CheckpointReader& reader,
                 const std::string& name, const Remapping& r, int64_t width) {
  HashMap<int64_t, int64_t> places;
  int64_t begin = INT64_MAX, end = 0;
  for (size_t i = 0; i < r.rows.size(); ++i) {
    if (r.rows[i] < 0) continue;
    places.emplace(r.rows[i], static_cast<int64_t>(i));
    begin = std::min(begin, r.rows[i]);
    end = std::max(end, r.rows[i] + 1);
  }
  int64_t most = c.op().int_attr("max_rows_in_memory");
  if (most <= 0) most = INT64_MAX;
  for (int64_t first = begin, rows; first < end; first += rows) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    rows = std::min(most, end - first);
    HR_ASSIGN_OR_RETURN(Tensor part,
                        c.Temporary(DType::kFloat, Shape{rows, width}));
    HR_RETURN_IF_ERROR(
        reader.ReadSlice(name, {{{first, rows}, {0, width}}},
                         {static_cast<char*>(part.raw()), part.bytes()}));
    for (int64_t i = 0; i < rows; ++i) {
      const auto at = places.find(first + i);
      if (at == places.end()) continue;
      const float* from = part.data<float>() + i * width;
      float* out = c.out<float>(0) + at->second * r.width;
      for (int64_t k = 0; k < r.width; ++k) {
        if (r.Column(k) >= 0) out[k] = from[r.Column(k)];
      }
    }
  }
  return OkStatus();
}

// Fills what is new with the caller's values, in their order.
Status PutNew(KernelContext& c, const Remapping& r) {
  const absl::Span<const float> values = c.input(4).span<float>();
  size_t used = 0;
  float* out = c.out<float>(0);
  for (const int64_t row : r.rows) {
    for (int64_t k = 0; k < r.width; ++k, ++out) {
      if (row >= 0 && r.Column(k) >= 0) continue;
      if (used == values.size()) {
        return InvalidArgument("initializing_values contained ", values.size(),
                               " elements, but more missing values remain.");
      }
      *out = values[used++];
    }
  }
  if (used == values.size()) return OkStatus();
  return InvalidArgument("initializing_values contained ", values.size(),
                         " elements, but only ", used,
                         " elements were used to fill in missing values.");
}

Status LoadAndRemap(KernelContext& c) {
  if (c.input(0).num_elements() != 1) {
    return InvalidArgument(
        "The `ckpt_path` tensor must have exactly one element, got tensor of "
        "shape ",
        c.input(0).shape());
  }
  if (c.input(1).num_elements() != 1) {
    return InvalidArgument(
        "The `old_tensor_name` tensor must have exactly one element, got "
        "tensor of shape ",
        c.input(1).shape());
  }
  HR_ASSIGN_OR_RETURN(const Remapping r, RemappingOf(c));
  const std::string& name = c.in<std::string>(1)[0];
  std::string prefix;
  HR_ASSIGN_OR_RETURN(FileSystem * fs,
                      FileSystemFor(c.in<std::string>(0)[0], &prefix));
  HR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(fs, prefix));
  HR_ASSIGN_OR_RETURN(const int64_t width, StoredWidth(*reader, name, r));
  HR_RETURN_IF_ERROR(PutStored(c, *reader, name, r, width));
  return PutNew(c, r);
}

Status RemappedMatrixShape(ShapeContext& c) {
  constexpr const char* kNames[] = {"row_remapping", "col_remapping"};
  for (int i = 2; i <= 3 && !c.in_graph(); ++i) {
    if (c.input(i).known_rank() && c.input(i).rank() != 1) {
      return InvalidArgument("The `", kNames[i - 2],
                             "` tensor must be 1-D, got a tensor of shape ",
                             c.input(i));
    }
  }
  const Shape out{c.op().int_attr("num_rows"), c.op().int_attr("num_cols")};
  int64_t count;
  if (!CountElements(out, &count)) {
    return InvalidArgument("a matrix of shape ", out, " is too large");
  }
  c.set_output(0, out);
  return OkStatus();
}

HR_OP(LoadAndRemapMatrix)
    .Traits({kReadsFiles})
    .Input("ckpt_path: string")
    .Input("old_tensor_name: string")
    .Input("row_remapping: int64")
    .Input("col_remapping: int64")
    .Input("initializing_values: float")
    .Output("output_matrix: float")
    .Attr("num_rows: int >= 0")
    .Attr("num_cols: int >= 1")
    .Attr("max_rows_in_memory: int = -1")
    .Doc(
        "A matrix of rows and columns of one in a checkpoint, and of values "
        "that are given, in their order, where there is none (-1).")
    .Stateful()
    .Shape(RemappedMatrixShape)
    .NoGradient()
    .Cpu(Compute<LoadAndRemap>);

}  // namespace
}  // namespace headrace
