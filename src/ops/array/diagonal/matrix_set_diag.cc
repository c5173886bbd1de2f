// MatrixSetDiag: matrices with other diagonals.
#include "base/thread_pool.h"
#include "op/vectorize.h"
#include "ops/array/diagonal/matrix_diagonals.h"
#include "ops/array/element_dispatch.h"

namespace headrace {
namespace {

Status SetShape(ShapeContext& c, const DiagonalBand& band) {
  const Shape &in = c.input(0), &diagonal = c.input(1);
  if (!in.fully_known() || !diagonal.known_rank()) return OkStatus();
  const int rank = in.rank();
  const int64_t rows = in[rank - 2], columns = in[rank - 1];
  auto check = [&](int64_t d, StringView name) {
    if (d == 0 || (-rows < d && d < columns)) return OkStatus();
    return InvalidArgument(name, " is out of bound: ", d,
                           " It must be between ", -rows, " and ", columns);
  };
  HR_RETURN_IF_ERROR(check(band.lower, "lower_diag_index"));
  HR_RETURN_IF_ERROR(check(band.upper, "upper_diag_index"));
  Shape expected = in.Sub(0, rank - 2);
  if (band.lower != band.upper) expected.AddDim(band.count());
  expected.AddDim(LongestDiagonal(band, rows, columns));
  if (!diagonal.CompatibleWith(expected)) {
    return InvalidArgument(
        "Either first dimensions of diagonal don't match input.shape[:-2], or "
        "diagonal.shape[:-1] is not equal to the longests diagonal in range "
        "[lower_diag_index:upper_diag_index].\nInput shape: ",
        in, "\nDiagonal shape: ", diagonal,
        "\nExpected diagonal shape: ", expected);
  }
  return OkStatus();
}

Status CheckRanks(ShapeContext& c) {
  const Shape &in = c.input(0), &diagonal = c.input(1);
  c.set_output(0, in);
  if (in.known_rank() && in.rank() < 2) {
    return c.Refuse(
        RankIsLess(2, in.rank()),
        InvalidArgument("input must be at least 2-dim, received shape: ", in));
  }
  if (diagonal.known_rank() && diagonal.rank() < 1) {
    return c.Refuse(
        RankIsLess(1, 0),
        InvalidArgument("diagonal must be at least 1-dim, received shape: ",
                        diagonal));
  }
  return OkStatus();
}
Status SetRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRanks(c));
  return SetShape(c, {});
}
Status SetV2Rule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRanks(c));
  HR_RETURN_IF_ERROR(CheckBandShape(c.input(2)));
  if (c.value(2) == nullptr) return OkStatus();
  HR_ASSIGN_OR_RETURN(DiagonalBand band, ReadBand(*c.value(2)));
  return SetShape(c, band);
}

template <typename T>
void PutDiagonals(const T* diagonals, T* out, int64_t batch, int64_t rows,
                  int64_t columns, const DiagonalBand& band,
                  const DiagonalAlign& align) {
  const int64_t longest = LongestDiagonal(band, rows, columns);
  const int64_t count = band.count();
  ParallelFor(batch * count, 1.0 * longest, [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const int64_t d = band.upper - k % count;
      const int64_t n = DiagonalLength(d, rows, columns);
      const int64_t left = DiagonalOffset(d, longest, rows, columns, align);
      const int64_t i = std::max<int64_t>(-d, 0), j = std::max<int64_t>(d, 0);
      T* to = out + (k / count * rows + i) * columns + j;
      const T* from = diagonals + k * longest + left;
      for (int64_t x = 0; x < n; ++x) to[x * (columns + 1)] = from[x];
    }
  });
}

Status MatrixSetDiag(KernelContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0);
  const int rank = in.rank();
  DiagonalBand band;
  if (c.num_inputs() > 2) {
    HR_ASSIGN_OR_RETURN(band, ReadBand(c.input(2)));
  }
  // In place nothing has to be copied.
  if (out.raw() != in.raw()) CopyElements(in, out);
  if (out.num_elements() == 0) return OkStatus();
  DispatchElement(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    PutDiagonals(static_cast<const T*>(c.input(1).raw()),
                 static_cast<T*>(out.raw()), in.shape().Product(0, rank - 2),
                 in.dim(rank - 2), in.dim(rank - 1), band, AlignOf(c.op()));
  });
  return OkStatus();
}

// dy off the diagonals for the input, its diagonals for the diagonals.
Status SetGradient(GradientContext& g) {
  Value dy = g.grad();
  g.set(1, g("MatrixDiagPart", {dy}));
  if (!g.ok()) return g.status();
  Value zeros = g("ZerosLike", {g.results()[1].dense});
  g.set(0, g("MatrixSetDiag", {dy, zeros}));
  return g.status();
}
Status SetV2Gradient(GradientContext& g) {
  Value dy = g.grad();
  if (!g.ok()) return g.status();
  const AttrMap attrs = GradientAlign(g);
  Value zero = g.Scalar(dy.dtype(), 0);
  g.set(1, g("MatrixDiagPartV3", {dy, g.input(2), zero}, attrs));
  if (!g.ok()) return g.status();
  Value zeros = g("ZerosLike", {g.results()[1].dense});
  g.set(0, g("MatrixSetDiagV3", {dy, zeros, g.input(2)}, attrs));
  return g.status();
}

Status VectorizeSetDiag(VectorizeContext& c) {
  HR_RETURN_IF_ERROR(c.WantSharedFrom(2));
  std::vector<Value> inputs = {c.Stacked(0), c.Stacked(1)};
  if (c.num_inputs() > 2) inputs.push_back(c.input(2));
  return c.SetAll(c.Again(inputs));
}

HR_OP(MatrixSetDiag)
    .Input("input: T")
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Matrices with their main diagonals replaced.")
    .Shape(SetRule)
    .Gradient(SetGradient)
    .GradientSkips({0, 1}, {0})
    .InPlace({0})
    .Vectorize(VectorizeSetDiag)
    .Cpu(Compute<MatrixSetDiag>);

HR_OP(BatchMatrixSetDiag)
    .Input("input: T")
    .Input("diagonal: T")
    .Output("output: T")
    .Attr("T: type")
    .Deprecated(14, "Use MatrixSetDiag")
    .Doc("Matrices with their main diagonals replaced.")
    .Shape(SetRule)
    .InPlace({0})
    .Cpu(Compute<MatrixSetDiag>);

OpBuilder MatrixSetDiagOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: T")
      .Input("diagonal: T")
      .Input("k: int32")
      .Output("output: T")
      .Attr("T: type")
      .Doc("Matrices with a band of diagonals replaced.")
      .Shape(SetV2Rule)
      .Gradient(SetV2Gradient)
      .GradientSkips({0, 1}, {0})
      .InPlace({0})
      .Vectorize(VectorizeSetDiag)
      .Cpu(Compute<MatrixSetDiag>);
  return b;
}
[[maybe_unused]] const OpRegistrar kMatrixSetDiags[] = {
    MatrixSetDiagOp("MatrixSetDiagV2"),
    MatrixSetDiagOp("MatrixSetDiagV3")
        .Attr(
            "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = "
            "'RIGHT_LEFT'"),
};

}  // namespace
}  // namespace headrace
