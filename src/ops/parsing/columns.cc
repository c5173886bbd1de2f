#include "ops/parsing/columns.h"

#include <algorithm>
#include <atomic>

#include "base/thread_pool.h"

namespace headrace {
namespace {

// Estimates that decide how work is shared out.
constexpr double kNanosecondsPerValue = 4;
constexpr double kNanosecondsPerCell = 40;

double CostOf(int64_t cells, int64_t values) {
  return kNanosecondsPerCell +
         kNanosecondsPerValue * static_cast<double>(values) /
             static_cast<double>(std::max<int64_t>(cells, 1));
}

// Copies cell i to element begins(i) of `values`, on several threads.
template <typename Begins>
Status CopyCells(absl::Span<const Cell> cells, int64_t total, Begins begins,
                 Tensor& values) {
  std::atomic<bool> bad{false};
  ParallelFor(cells.size(), CostOf(cells.size(), total),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  if (cells[i].count > 0 &&
                      !CopyCell(cells[i], begins(i), values).ok()) {
                    bad = true;
                  }
                }
              });
  return bad ? DataLoss("a feature's values changed while they were read")
             : OkStatus();
}

// The begins of cells one behind the other, with the end of the last.
StatusOr<std::vector<int64_t>> BeginsOf(absl::Span<const Cell> cells) {
  std::vector<int64_t> begins(cells.size() + 1);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (__builtin_add_overflow(begins[i], cells[i].count, &begins[i + 1])) {
      return ResourceExhausted("too many values in a batch of examples");
    }
  }
  return begins;
}

int64_t LargestCount(absl::Span<const Cell> cells) {
  int64_t most = 0;
  for (const Cell& cell : cells) most = std::max(most, cell.count);
  return most;
}

Status EmitDense(KernelContext& c, const Column& column,
                 absl::Span<const Cell> cells, bool batched, int output) {
  const int64_t stride = column.stride();
  int64_t size = stride;  // of one example
  std::vector<int64_t> dims(column.shape.dims().begin(),
                            column.shape.dims().end());
  if (column.variable()) {
    size = LargestCount(cells);
    dims[0] = stride == 0 ? 0 : size / stride;
  }
  if (batched) dims.insert(dims.begin(), cells.size());
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  HR_RETURN_IF_ERROR(c.Allocate(output, shape));
  Tensor& values = c.output(output);
  HR_RETURN_IF_ERROR(CopyCells(
      cells, static_cast<int64_t>(cells.size()) * size,
      [&](int64_t i) { return i * size; }, values));
  const Tensor& fallback = column.fallback;
  for (size_t i = 0; i < cells.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * size;
    if (column.variable()) {
      FillElements(fallback, 0, values, begin + cells[i].count, begin + size);
    } else if (cells[i].feature.dtype == DType::kInvalid) {
      for (int64_t k = 0; k < size; ++k) {
        FillElements(fallback, k, values, begin + k, begin + k + 1);
      }
    }
  }
  return OkStatus();
}

Status EmitSparse(KernelContext& c, const Column& column,
                  absl::Span<const Cell> cells, bool batched,
                  const ColumnOutputs& out) {
  HR_ASSIGN_OR_RETURN(const auto begins, BeginsOf(cells));
  const int64_t total = begins.back(), width = batched ? 2 : 1;
  HR_ASSIGN_OR_RETURN(const Shape indices_shape, Shape::Make({total, width}));
  HR_RETURN_IF_ERROR(c.Allocate(out.indices, indices_shape));
  HR_RETURN_IF_ERROR(c.Allocate(out.values, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(out.shape, Shape{width}));
  int64_t* index = c.out<int64_t>(out.indices);
  for (size_t i = 0; i < cells.size(); ++i) {
    for (int64_t k = 0; k < cells[i].count; ++k) {
      if (batched) *index++ = static_cast<int64_t>(i);
      *index++ = k;
    }
  }
  int64_t* shape = c.out<int64_t>(out.shape);
  if (batched) *shape++ = static_cast<int64_t>(cells.size());
  *shape = LargestCount(cells);
  return CopyCells(
      cells, total, [&](int64_t i) { return begins[i]; }, c.output(out.values));
}

Status EmitRagged(KernelContext& c, const Column& column,
                  absl::Span<const Cell> cells, bool batched,
                  const ColumnOutputs& out) {
  HR_ASSIGN_OR_RETURN(const auto begins, BeginsOf(cells));
  HR_RETURN_IF_ERROR(c.Allocate(out.values, Shape{begins.back()}));
  HR_RETURN_IF_ERROR(EmitSplits(
      c, out.splits, column.split_type,
      batched ? absl::MakeConstSpan(begins) : absl::Span<const int64_t>()));
  return CopyCells(
      cells, begins.back(), [&](int64_t i) { return begins[i]; },
      c.output(out.values));
}

}  // namespace

Status CheckDenseColumn(const Column& column, int i) {
  const Shape& shape = column.shape;
  bool known = shape.known_rank();
  for (int d = 1; known && d < shape.rank(); ++d) known = shape[d] >= 0;
  if (!known) {
    return InvalidArgument(
        "dense_shapes[", i,
        "] has unknown rank or unknown inner dimensions: ", shape);
  }
  const Tensor& fallback = column.fallback;
  if (column.variable()) {
    if (fallback.num_elements() != 1) {
      return InvalidArgument(
          "dense_shape[", i, "] is a variable length shape: ", shape,
          ", therefore def_value[", i,
          "] must contain a single element (the padding element).  But its "
          "shape is: ",
          fallback.shape());
    }
  } else if (fallback.num_elements() > 0 && fallback.shape() != shape) {
    return InvalidArgument("def_value[", i, "].shape() == ", fallback.shape(),
                           " is not compatible with dense_shapes_[", i,
                           "] == ", shape);
  }
  return OkStatus();
}

ColumnIndex IndexColumns(absl::Span<const Column> columns) {
  ColumnIndex index;
  for (size_t i = 0; i < columns.size(); ++i) {
    index[columns[i].key] = static_cast<int>(i);
  }
  return index;
}

Status CopyCell(const Cell& cell, int64_t at, Tensor& to) {
  char* const out = static_cast<char*>(to.raw()) + at * DTypeSize(to.dtype());
  return CopyValues(cell.feature, cell.count, out)
             ? OkStatus()
             : DataLoss("a feature's values do not end where they should");
}

void FillElements(const Tensor& source, int64_t from, Tensor& to, int64_t begin,
                  int64_t end) {
  if (begin >= end) return;
  if (to.dtype() == DType::kString) {
    std::fill(to.data<std::string>() + begin, to.data<std::string>() + end,
              source.data<std::string>()[from]);
  } else if (to.dtype() == DType::kInt64) {
    std::fill(to.data<int64_t>() + begin, to.data<int64_t>() + end,
              source.data<int64_t>()[from]);
  } else {
    std::fill(to.data<float>() + begin, to.data<float>() + end,
              source.data<float>()[from]);
  }
}

Status EmitSplits(KernelContext& c, int output, DType dtype,
                  absl::Span<const int64_t> splits) {
  HR_RETURN_IF_ERROR(
      c.Allocate(output, Shape{static_cast<int64_t>(splits.size())}));
  if (dtype == DType::kInt64) {
    std::copy(splits.begin(), splits.end(), c.out<int64_t>(output));
    return OkStatus();
  }
  if (!splits.empty() && splits.back() > INT32_MAX) {
    return InvalidArgument("row splits of ", splits.back(),
                           " values do not fit in int32");
  }
  for (size_t i = 0; i < splits.size(); ++i) {
    c.out<int32_t>(output)[i] = static_cast<int32_t>(splits[i]);
  }
  return OkStatus();
}

Status EmitColumn(KernelContext& c, const Column& column,
                  absl::Span<const Cell> cells, bool batched,
                  const ColumnOutputs& out) {
  switch (column.kind) {
    case Column::kDense:
      return EmitDense(c, column, cells, batched, out.values);
    case Column::kSparse:
      return EmitSparse(c, column, cells, batched, out);
    case Column::kRagged:
      return EmitRagged(c, column, cells, batched, out);
  }
  return OkStatus();
}

}  // namespace headrace
