// MatrixDiag: matrices from their diagonals.
#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/diagonal/matrix_diagonals.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

Status CheckDiagonal(ShapeContext& c) {
  const Shape& diagonal = c.input(0);
  if (diagonal.known_rank() && diagonal.rank() < 1) {
    return c.Refuse(
        RankIsLess(1, 0),
        InvalidArgument("diagonal must be at least 1-dim, received shape: ",
                        diagonal));
  }
  return OkStatus();
}

// Rows and columns of the result; -1 means "as small as fits", or unknown.
Status MatrixSize(const DiagonalBand& band, int64_t longest, int64_t* rows,
                  int64_t* columns) {
  // A diagonal below the main one begins that many rows down.
  const int64_t least_rows = longest - std::min<int64_t>(band.upper, 0);
  const int64_t least_columns = longest + std::max<int64_t>(band.lower, 0);
  if (*rows != -1 && *rows < least_rows) {
    return InvalidArgument("The number of rows is too small.");
  }
  if (*columns != -1 && *columns < least_columns) {
    return InvalidArgument("The number of columns is too small.");
  }
  if (*rows == -1 && *columns == -1) {
    *rows = *columns = std::max(least_rows, least_columns);
  } else if (*rows == -1) {
    *rows = least_rows;
  } else if (*columns == -1) {
    *columns = least_columns;
  }
  // One of both must be as small as fits: otherwise the diagonal would end amid
  // the matrix.
  if (*rows != least_rows && *columns != least_columns) {
    return InvalidArgument(
        "The number of rows or columns is not consistent with the specified "
        "d_lower, d_upper, and diagonal.");
  }
  return OkStatus();
}

Status MatrixDiagRule(ShapeContext& c) {
  const Shape& diagonal = c.input(0);
  HR_RETURN_IF_ERROR(CheckDiagonal(c));
  if (!diagonal.known_rank()) return OkStatus();
  const int64_t n = diagonal[diagonal.rank() - 1];
  c.set_output(0, diagonal.Concat(Shape{n}));
  return OkStatus();
}

Status CheckScalars(ShapeContext& c) {
  static constexpr StringView kNames[] = {"num_rows", "num_cols",
                                          "padding_value"};
  for (int i = 2; i < 5; ++i) {
    const Shape& s = c.input(i);
    if (s.fully_known() && s.num_elements() != 1) {
      return InvalidArgument(kNames[i - 2], " must be a scalar");
    }
  }
  return OkStatus();
}

Status DiagV2Rule(ShapeContext& c) {
  const Shape& diagonal = c.input(0);
  HR_RETURN_IF_ERROR(CheckDiagonal(c));
  HR_RETURN_IF_ERROR(CheckBandShape(c.input(1)));
  HR_RETURN_IF_ERROR(CheckScalars(c));
  if (c.value(1) == nullptr || !diagonal.known_rank()) return OkStatus();
  HR_ASSIGN_OR_RETURN(DiagonalBand band, ReadBand(*c.value(1)));
  const int rank = diagonal.rank();
  // A single diagonal has no dimension of its own.
  const int lead = band.lower == band.upper ? rank - 1 : rank - 2;
  if (lead < 0) {
    return InvalidArgument("diagonal must be at least 2-dim, received shape: ",
                           diagonal);
  }
  if (lead == rank - 2 && diagonal[rank - 2] >= 0 &&
      diagonal[rank - 2] != band.count()) {
    return InvalidArgument(
        "The number of diagonals provided in the input does not match the "
        "lower_diag_index and upper_diag_index range.");
  }
  bool rows_known, columns_known;
  int64_t rows = -1, columns = -1;
  HR_RETURN_IF_ERROR(c.IntValue(2, &rows_known, &rows));
  HR_RETURN_IF_ERROR(c.IntValue(3, &columns_known, &columns));
  if (!rows_known || !columns_known || diagonal[rank - 1] < 0) {
    rows = columns = Shape::kUnknown;
  } else {
    HR_RETURN_IF_ERROR(MatrixSize(band, diagonal[rank - 1], &rows, &columns));
  }
  Shape out = diagonal.Sub(0, lead).Concat(Shape{rows, columns});
  if (out.fully_known()) {
    HR_ASSIGN_OR_RETURN(out, Shape::Make(out.dims()));
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

template <typename T>
void FillMatrices(const T* diagonals, const T& padding, T* out, int64_t batch,
                  int64_t rows, int64_t columns, int64_t longest,
                  const DiagonalBand& band, const DiagonalAlign& align) {
  ParallelFor(batch * rows, 1.0 * columns, [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const int64_t i = r % rows;
      T* row = out + r * columns;
      const T* source = diagonals + r / rows * band.count() * longest;
      for (int64_t j = 0; j < columns; ++j) {
        // Diagonals count from the main one, upwards.
        const int64_t d = j - i;
        if (d < band.lower || d > band.upper) {
          row[j] = padding;
          continue;
        }
        // The place along the diagonal, and what alignment puts before it.
        const int64_t at = i - std::max<int64_t>(-d, 0) +
                           DiagonalOffset(d, longest, rows, columns, align);
        // The uppermost diagonal comes first.
        row[j] = source[(band.upper - d) * longest + at];
      }
    }
  });
}

Status MatrixDiag(KernelContext& c) {
  const Tensor& diagonal = c.input(0);
  Tensor& out = c.output(0);
  const int rank = out.rank();
  DiagonalBand band;
  HR_ASSIGN_OR_RETURN(Tensor zero, Tensor::Allocate(out.dtype(), Shape()));
  FillZero(zero);
  const void* padding = zero.raw();
  if (c.num_inputs() > 1) {
    HR_ASSIGN_OR_RETURN(band, ReadBand(c.input(1)));
    padding = c.input(4).raw();
  }
  if (out.num_elements() == 0) return OkStatus();
  DispatchElement(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    FillMatrices(static_cast<const T*>(diagonal.raw()),
                 *static_cast<const T*>(padding), static_cast<T*>(out.raw()),
                 out.shape().Product(0, rank - 2), out.dim(rank - 2),
                 out.dim(rank - 1), diagonal.dim(diagonal.rank() - 1), band,
                 AlignOf(c.op()));
  });
  return OkStatus();
}

Status MatrixDiagGradient(GradientContext& g) {
  g.set(0, g("MatrixDiagPart", {g.grad()}));
  return g.status();
}

// The diagonals of dy, and what is not on them for the padding.
Status DiagV2Gradient(GradientContext& g) {
  Value dy = g.grad();
  if (!g.ok()) return g.status();
  const AttrMap attrs = GradientAlign(g);
  Value zero = g.Scalar(dy.dtype(), 0);
  g.set(0, g("MatrixDiagPartV3", {dy, g.input(1), zero}, attrs));
  if (!g.ok() || !g.wants(4)) return g.status();
  // What is left without the diagonals is padding.
  Value zeros = g("ZerosLike", {g.results()[0].dense});
  Value rest = g("MatrixSetDiagV3", {dy, zeros, g.input(1)}, attrs);
  Value axes = g("Range", {g.Int32(0), g("Rank", {rest}), g.Int32(1)});
  g.set(4, g("Sum", {rest, axes}));
  return g.status();
}

HR_OP(MatrixDiag)
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Square matrices that are zero but for the given diagonals.")
    .Shape(MatrixDiagRule)
    .Gradient(MatrixDiagGradient)
    .GradientSkips({0}, {0})
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<MatrixDiag>);

HR_OP(BatchMatrixDiag)
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Deprecated(14, "Use MatrixDiag")
    .Doc("Square matrices that are zero but for the given diagonals.")
    .Shape(MatrixDiagRule)
    .Cpu(Compute<MatrixDiag>);

OpBuilder MatrixDiagOp(const char* name) {
  OpBuilder b(name);
  b.Input("diagonal: T")
      .Input("k: int32")
      .Input("num_rows: int32")
      .Input("num_cols: int32")
      .Input("padding_value: T")
      .Output("output: T")
      .Attr("T: type")
      .Doc("Matrices with a band of diagonals and padding elsewhere.")
      .Shape(DiagV2Rule)
      .Gradient(DiagV2Gradient)
      .GradientSkips({0, 2, 3, 4}, {0})
      .Vectorize(VectorizeFirst)
      .Cpu(Compute<MatrixDiag>);
  return b;
}
[[maybe_unused]] const OpRegistrar kMatrixDiags[] = {
    MatrixDiagOp("MatrixDiagV2"),
    MatrixDiagOp("MatrixDiagV3")
        .Attr(
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = "
            "'RIGHT_LEFT'"),
};

}  // namespace
}  // namespace headrace
