// MatrixDiagPart: the diagonals of matrices.
#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/diagonal/matrix_diagonals.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

Status CheckMatrix(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (in.known_rank() && in.rank() < 2) {
    return c.Refuse(
        RankIsLess(2, in.rank()),
        InvalidArgument("input must be at least 2-dim, received shape: ", in));
  }
  return OkStatus();
}

Status PartShape(ShapeContext& c, const DiagonalBand& band) {
  const Shape& in = c.input(0);
  const int rank = in.rank();
  const int64_t rows = in[rank - 2], columns = in[rank - 1];
  Shape out = in.Sub(0, rank - 2);
  if (band.lower != band.upper) out.AddDim(band.count());
  if (rows >= 0 && columns >= 0) {
    HR_RETURN_IF_ERROR(CheckBand(band, rows, columns));
    out.AddDim(LongestDiagonal(band, rows, columns));
  } else {
    out.AddDim(Shape::kUnknown);
  }
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status PartRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckMatrix(c));
  return c.input(0).known_rank() ? PartShape(c, {}) : OkStatus();
}

Status PartV2Rule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckMatrix(c));
  HR_RETURN_IF_ERROR(CheckBandShape(c.input(1)));
  if (c.input(2).fully_known() && c.input(2).num_elements() != 1) {
    return InvalidArgument("Padding must be scalar.");
  }
  if (c.value(1) == nullptr || !c.input(0).known_rank()) return OkStatus();
  HR_ASSIGN_OR_RETURN(DiagonalBand band, ReadBand(*c.value(1)));
  return PartShape(c, band);
}

template <typename T>
void TakeDiagonals(const T* in, const T& padding, T* out, int64_t batch,
                   int64_t rows, int64_t columns, const DiagonalBand& band,
                   const DiagonalAlign& align) {
  const int64_t longest = LongestDiagonal(band, rows, columns);
  const int64_t count = band.count();
  ParallelFor(batch * count, 1.0 * longest, [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const int64_t d = band.upper - k % count;
      const int64_t n = DiagonalLength(d, rows, columns);
      const int64_t left = DiagonalOffset(d, longest, rows, columns, align);
      const int64_t i = std::max<int64_t>(-d, 0), j = std::max<int64_t>(d, 0);
      const T* from = in + (k / count * rows + i) * columns + j;
      T* to = out + k * longest;
      std::fill_n(to, left, padding);
      // One row down and one column on.
      for (int64_t x = 0; x < n; ++x) to[left + x] = from[x * (columns + 1)];
      std::fill_n(to + left + n, longest - left - n, padding);
    }
  });
}

Status MatrixDiagPart(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  const int rank = in.rank();
  DiagonalBand band;
  HR_ASSIGN_OR_RETURN(Tensor zero, Tensor::Allocate(out.dtype(), Shape()));
  FillZero(zero);
  const void* padding = zero.raw();
  if (c.num_inputs() > 1) {
    HR_ASSIGN_OR_RETURN(band, ReadBand(c.input(1)));
    padding = c.input(2).raw();
  }
  if (out.num_elements() == 0) return OkStatus();
  DispatchElement(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    TakeDiagonals(static_cast<const T*>(in.raw()),
                  *static_cast<const T*>(padding), static_cast<T*>(out.raw()),
                  in.shape().Product(0, rank - 2), in.dim(rank - 2),
                  in.dim(rank - 1), band, AlignOf(c.op()));
  });
  return OkStatus();
}

// dy on the diagonals of a zero matrix.
Status PartGradient(GradientContext& g) {
  Value zeros = g("ZerosLike", {g.input(0)});
  g.set(0, g("MatrixSetDiag", {zeros, g.grad()}));
  return g.status();
}
Status PartV2Gradient(GradientContext& g) {
  const AttrMap attrs = GradientAlign(g);
  Value zeros = g("ZerosLike", {g.input(0)});
  g.set(0, g("MatrixSetDiagV3", {zeros, g.grad(), g.input(1)}, attrs));
  return g.status();
}

HR_OP(MatrixDiagPart)
    .Input("input: T")
    .Output("diagonal: T")
    .Attr("T: type")
    .Doc("The main diagonals of matrices.")
    .Shape(PartRule)
    .Gradient(PartGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeFirst)
    .Cpu(Compute<MatrixDiagPart>);

HR_OP(BatchMatrixDiagPart)
    .Input("input: T")
    .Output("diagonal: T")
    .Attr("T: type")
    .Deprecated(14, "Use MatrixDiagPart")
    .Doc("The main diagonals of matrices.")
    .Shape(PartRule)
    .Cpu(Compute<MatrixDiagPart>);

OpBuilder MatrixDiagPartOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("k: int32")
      .Input("padding_value: T")
      .Output("diagonal: T")
      .Attr("T: type")
      .Doc("A band of diagonals of matrices, short ones being padded.")
      .Shape(PartV2Rule)
      .Gradient(PartV2Gradient)
      .GradientSkips({2}, {0})
      .Vectorize(VectorizeFirst)
      .Cpu(Compute<MatrixDiagPart>);
  return b;
}
[[maybe_unused]] const OpRegistrar kMatrixDiagParts[] = {
    MatrixDiagPartOp("MatrixDiagPartV2"),
    MatrixDiagPartOp("MatrixDiagPartV3")
        .Attr(
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = "
            "'RIGHT_LEFT'"),
};

}  // namespace
}  // namespace headrace
