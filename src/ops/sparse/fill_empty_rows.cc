// SparseFillEmptyRows and RaggedFillEmptyRows: a default entry in each row
// that has none.
#include <algorithm>

#include "ops/array/element_dispatch.h"
#include "ops/sparse/sparse_input.h"

namespace headrace {
namespace {

// indices [n, width] whose column 0 is the row, filled to `rows` rows.
struct Filling {
  const int64_t* indices;
  int64_t n, width, rows;
  Tensor values, fallback;
};

Status Fill(KernelContext& c, const Filling& f, const Shape& indices_shape) {
  // Entries of each row, then where they end.
  HR_ASSIGN_OR_RETURN(Tensor counts, c.Temporary(DType::kInt64, Shape{f.rows}));
  FillZero(counts);
  int64_t* ends = counts.data<int64_t>();
  for (int64_t i = 0; i < f.n; ++i) {
    const int64_t row = f.indices[i * f.width];
    if (row < 0 || row >= f.rows) {
      return InvalidArgument("indices(", i, ", 0) is invalid: ", row,
                             row < 0 ? " < 0" : absl::StrCat(" >= ", f.rows));
    }
    ++ends[row];
  }
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{f.rows}));
  HR_RETURN_IF_ERROR(c.Allocate(3, Shape{f.n}));
  int64_t total = 0;
  for (int64_t r = 0; r < f.rows; ++r) {
    c.out<bool>(2)[r] = ends[r] == 0;
    const int64_t begin = total;
    total += std::max<int64_t>(1, ends[r]);
    // From here on `ends` tells where the next entry of each row goes.
    ends[r] = begin;
  }
  Shape shape = indices_shape;
  shape.set_dim(0, total);
  HR_RETURN_IF_ERROR(c.Allocate(0, shape));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  int64_t* y = c.out<int64_t>(0);
  // A new entry stands in column 0 of its row.
  std::fill_n(y, total * f.width, 0);
  DispatchElement(f.values.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* values = static_cast<T*>(c.output(1).raw());
    std::fill_n(values, total, *static_cast<const T*>(f.fallback.raw()));
    for (int64_t r = 0; r < f.rows; ++r) {
      if (c.out<bool>(2)[r]) y[ends[r] * f.width] = r;
    }
    for (int64_t i = 0; i < f.n; ++i) {
      // The entries of a row keep their order, whatever the order of the rows.
      const int64_t at = ends[f.indices[i * f.width]]++;
      std::copy_n(f.indices + i * f.width, f.width, y + at * f.width);
      values[at] = static_cast<const T*>(f.values.raw())[i];
      c.out<int64_t>(3)[i] = at;
    }
  });
  return OkStatus();
}

Status SparseFillRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSparseRanks(c, 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  Dims dims;
  c.set_output(0, Shape{-1, SparseRank(c, 0)});
  c.set_output(1, Shape{-1});
  c.set_output(
      2, Shape{c.IntValues(2, &dims) && !dims.empty() && dims[0] >= 0 ? dims[0]
                                                                      : -1});
  c.set_output(3, c.input(1));
  return OkStatus();
}

Status SparseFill(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(SparseInput s, SparseInputAt(c, 0));
  if (s.rank == 0) {
    return InvalidArgument("Dense shape cannot be empty.");
  }
  // The size is the caller's; so many rows cannot be allocated, and their bytes
  // still count in 64 bits.
  if (s.dims[0] > INT64_MAX / 64) {
    return InvalidArgument("SparseFillEmptyRows: too many rows: ", s.dims[0]);
  }
  return Fill(c,
              {s.indices.data<int64_t>(), s.count, s.rank, s.dims[0], s.values,
               c.input(3)},
              s.indices.shape());
}

template <int kDefault>
Status FillGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (!dy) return g.status();
  ValueList d = g.All("SparseFillEmptyRowsGrad", {g.output(3), dy});
  if (!g.ok()) return g.status();
  g.set(1, d[0]);
  g.set(kDefault, d[1]);
  return g.status();
}

HR_OP(SparseFillEmptyRows)
    .Input("indices: int64")
    .Input("values: T")
    .Input("dense_shape: int64")
    .Input("default_value: T")
    .Output("output_indices: int64")
    .Output("output_values: T")
    .Output("empty_row_indicator: bool")
    .Output("reverse_index_map: int64")
    .Attr("T: type")
    .Doc("A sparse tensor with a default entry in each empty row.")
    .Shape(SparseFillRule)
    .Gradient(FillGradient<3>)
    .GradientSkips({0, 1, 2, 3}, {0, 1, 2})
    .Cpu(ComputeOwn<SparseFill>);

Status RaggedFillRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  for (int i = 0; i < 3; ++i) c.set_output(i, Shape{-1});
  c.set_output(3, c.input(1));
  return OkStatus();
}

Status RaggedFill(KernelContext& c) {
  const Tensor &ids = c.input(0), &values = c.input(1);
  const int64_t rows = c.input(2).scalar<int64_t>();
  if (ids.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "Number of values must match the number of row "
        "ids: ",
        values.dim(0), " and ", ids.dim(0));
  }
  if (rows < 0 || rows > INT64_MAX / 64) {
    return InvalidArgument("RaggedFillEmptyRows: nrows ", rows,
                           " is out of range");
  }
  return Fill(c, {ids.data<int64_t>(), ids.dim(0), 1, rows, values, c.input(3)},
              ids.shape());
}

HR_OP(RaggedFillEmptyRows)
    .Input("value_rowids: int64")
    .Input("values: T")
    .Input("nrows: int64")
    .Input("default_value: T")
    .Output("output_value_rowids: int64")
    .Output("output_values: T")
    .Output("empty_row_indicator: bool")
    .Output("reverse_index_map: int64")
    .Attr("T: type")
    .Doc("Rows of values with a default value in each empty row.")
    .Shape(RaggedFillRule)
    .Gradient(FillGradient<3>)
    .GradientSkips({0, 1, 2, 3}, {0, 1, 2})
    .Cpu(ComputeOwn<RaggedFill>);

Status FillGradRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 1));
  c.set_output(0, c.input(0));
  c.set_output(1, Shape());
  return OkStatus();
}

Status FillGrad(KernelContext& c) {
  const Tensor &map = c.input(0), &dy = c.input(1);
  // Output entries that no input maps to are the added ones: their gradients
  // sum to that of the default.
  std::vector<bool> used(dy.dim(0));
  for (int64_t i = 0; i < map.dim(0); ++i) {
    const int64_t at = map.data<int64_t>()[i];
    if (at < 0 || at >= dy.dim(0)) {
      return InvalidArgument("Elements in reverse index must be in [0, ",
                             dy.dim(0), ") but got ", at);
    }
    used[at] = true;
  }
  const bool known = DispatchDType(dy.dtype(), NumberTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < map.dim(0); ++i) {
      c.out<T>(0)[i] = dy.data<T>()[map.data<int64_t>()[i]];
    }
    T sum = T(0);
    for (int64_t k = 0; k < dy.dim(0); ++k) {
      if (!used[k]) sum = T(sum + dy.data<T>()[k]);
    }
    *c.out<T>(1) = sum;
  });
  if (known) return OkStatus();
  return Unimplemented(c.op().name(), " of ", DTypeName(dy.dtype()));
}

OpBuilder FillGradOp(const char* name) {
  OpBuilder b(name);
  b.Input("reverse_index_map: int64")
      .Input("grad_values: T")
      .Output("d_values: T")
      .Output("d_default_value: T")
      .Attr("T: type")
      .Doc("The gradients of filled rows for values and default.")
      .Shape(FillGradRule)
      .Cpu(Compute<FillGrad>);
  return b;
}
const OpRegistrar sparse_grad = FillGradOp("SparseFillEmptyRowsGrad");
const OpRegistrar ragged_grad = FillGradOp("RaggedFillEmptyRowsGrad");

}  // namespace
}  // namespace headrace
