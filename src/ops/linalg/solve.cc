// MatrixInverse, MatrixSolve, MatrixTriangularSolve, MatrixDeterminant,
// LogMatrixDeterminant, MatrixSolveLs.
#include <cmath>

#include "op/vectorize.h"
#include "ops/linalg/matrix_op.h"
#include "ops/linalg/old_forms.h"

namespace headrace {
namespace {

struct Inverse {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Tensor& a = c.input(0);
    const int64_t n = FromEnd(a.shape(), 1);
    const bool adjoint = c.op().bool_attr("adjoint");
    return ForMatrices(
        BatchOf(a.shape()).num_elements(), 3.0 * n * n * n, [&](int64_t i) {
          return Linalg<T>::Invert(c.in<T>(0) + i * n * n, n, adjoint,
                                   c.out<T>(0) + i * n * n);
        });
  }
};

Status InverseGradient(GradientContext& g) {
  Value d = g.grad(), y = g.output(0);
  if (!d) return g.status();
  const bool adjoint = g.op().bool_attr("adjoint");
  // Of y = a^-1: -y^H d y^H; of y = a^-H: -y d^H y.
  Value inner =
      adjoint ? MatMul(g, d, y, true, false) : MatMul(g, d, y, false, true);
  g.set(0, g("Neg", {MatMul(g, y, inner, !adjoint, false)}));
  return g.status();
}

HR_OP(MatrixInverse)
    .Input("input: T")
    .Output("output: T")
    .Attr("adjoint: bool = false")
    .Attr(kMatrixTypes)
    .Doc("Inverses of square matrices, or of their adjoints.")
    .Shape(SquareShape)
    .Gradient(InverseGradient)
    .GradientSkips({0}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<Inverse>>);

struct Solve {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape &a = c.input(0).shape(), &b = c.input(1).shape();
    const int64_t n = FromEnd(a, 1), m = FromEnd(b, 1);
    const bool adjoint = c.op().bool_attr("adjoint");
    return ForMatrices(
        BatchOf(a).num_elements(), 1.0 * n * n * (n + m), [&](int64_t i) {
          return Linalg<T>::Solve(c.in<T>(0) + i * n * n, n,
                                  c.in<T>(1) + i * n * m, m, adjoint,
                                  c.out<T>(0) + i * n * m);
        });
  }
};

Status SolveGradient(GradientContext& g) {
  Value d = g.grad(), y = g.output(0);
  if (!d) return g.status();
  const bool adjoint = g.op().bool_attr("adjoint");
  // Of y = a^-1 b: the gradient for b is a^-H d, that for a is -db y^H (with
  // a^H in place of a its adjoint, -y db^H).
  Value db = g("MatrixSolve", {g.input(0), d}, {{"adjoint", !adjoint}});
  Value da =
      adjoint ? MatMul(g, y, db, false, true) : MatMul(g, db, y, false, true);
  g.set(0, g("Neg", {da}));
  g.set(1, db);
  return g.status();
}

HR_OP(MatrixSolve)
    .Input("matrix: T")
    .Input("rhs: T")
    .Output("output: T")
    .Attr("adjoint: bool = false")
    .Attr(kMatrixTypes)
    .Doc("Solutions of systems of linear equations.")
    .Shape(SolveShape)
    .Gradient(SolveGradient)
    .GradientSkips({1}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<Solve>>);

// Batch dimensions broadcast.
Status TriangularShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckSquare(c, a));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  const int64_t n = FromEnd(a, 1), rows = FromEnd(b, 2);
  if (n >= 0 && rows >= 0 && n != rows) {
    return c.Refuse(DimensionsDiffer(n, rows),
                    InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ",
                                    rows, ": ", a, " ", b, " ", 0, " ", 0));
  }
  StatusOr<Shape> batch = BroadcastShapes(BatchOf(a), BatchOf(b));
  if (!batch.ok()) {
    return c.Refuse(NotBroadcast(BatchOf(a), BatchOf(b)), batch.status());
  }
  c.set_output(0, WithMatrix(*batch, rows >= 0 ? rows : n, FromEnd(b, 1)));
  return OkStatus();
}

// Which matrix of a batch of shape `own` is used at `i` of `batch`.
int64_t MatrixAt(const Shape& own, const Shape& batch, int64_t i) {
  int64_t at = 0, stride = 1;
  for (int d = 1; d <= batch.rank(); ++d) {
    const int64_t size = batch[batch.rank() - d], k = i % size;
    i /= size;
    // Dimensions that the matrix' own batch does not have repeat it.
    if (d > own.rank()) continue;
    const int64_t own_size = own[own.rank() - d];
    if (own_size != 1) at += k * stride;
    stride *= own_size;
  }
  return at;
}

struct TriangularSolve {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape &a = c.input(0).shape(), &b = c.input(1).shape();
    const int64_t n = FromEnd(a, 1), m = FromEnd(b, 1);
    const Shape batch = BatchOf(c.output(0).shape());
    const Shape in_a = BatchOf(a), in_b = BatchOf(b);
    const bool lower = c.op().bool_attr("lower");
    const bool adjoint = c.op().bool_attr("adjoint");
    return ForMatrices(batch.num_elements(), 0.5 * n * n * m, [&](int64_t i) {
      return Linalg<T>::SolveTriangular(
          c.in<T>(0) + MatrixAt(in_a, batch, i) * n * n, n,
          c.in<T>(1) + MatrixAt(in_b, batch, i) * n * m, m, lower, adjoint,
          c.out<T>(0) + i * n * m);
    });
  }
};

Status TriangularGradient(GradientContext& g) {
  Value d = g.grad(), y = g.output(0);
  if (!d) return g.status();
  const bool lower = g.op().bool_attr("lower");
  const bool adjoint = g.op().bool_attr("adjoint");
  Value db = g("MatrixTriangularSolve", {g.input(0), d},
               {{"lower", lower}, {"adjoint", !adjoint}});
  Value da =
      adjoint ? MatMul(g, y, db, false, true) : MatMul(g, db, y, false, true);
  // Only the triangle was read. SetBroadcast sums over the batches that a
  // matrix served.
  g.SetBroadcast(Triangle(g, g("Neg", {da}), lower), db);
  return g.status();
}

HR_OP(MatrixTriangularSolve)
    .Input("matrix: T")
    .Input("rhs: T")
    .Output("output: T")
    .Attr("lower: bool = true")
    .Attr("adjoint: bool = false")
    .Attr("T: {bfloat16, double, float, half, complex64, complex128}")
    .Doc("Solutions of triangular systems of linear equations.")
    .Shape(TriangularShape)
    .Gradient(TriangularGradient)
    .Vectorize(VectorizeBroadcast)
    .Cpu(ComputeFor<PickMatrix<TriangularSolve>>);

Status ScalarsShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSquare(c, c.input(0), /*columns_first=*/true));
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, BatchOf(c.input(0)));
  }
  return OkStatus();
}

struct LogDeterminant {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    return ForMatrices(BatchOf(a).num_elements(), 1.0 * n * n * n,
                       [&](int64_t i) {
                         T sign, log_abs;
                         HR_RETURN_IF_ERROR(Linalg<T>::LogDeterminant(
                             c.in<T>(0) + i * n * n, n, &sign, &log_abs));
                         if (c.num_outputs() == 2) {
                           c.out<T>(0)[i] = sign;
                           c.out<T>(1)[i] = log_abs;
                         } else {
                           c.out<T>(0)[i] = sign * std::exp(log_abs);
                         }
                         return OkStatus();
                       });
  }
};

// Scalars of shape [...] as [..., 1, 1].
Value AsMatrices(OpScope& s, const Value& v) {
  return s("ExpandDims", {s("ExpandDims", {v, s.Int32(-1)}), s.Int32(-1)});
}

Status DeterminantGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  // Jacobi's formula: the gradient of det(a) is det(a) a^-H.
  Value inverse = g("MatrixInverse", {g.input(0)}, {{"adjoint", true}});
  Value factor = AsMatrices(g, g("Mul", {d, g.output(0)}));
  g.set(0, g("Mul", {factor, inverse}));
  return g.status();
}

Status LogDeterminantGradient(GradientContext& g) {
  // The sign is constant wherever the determinant is not 0.
  Value d = g.grad(1);
  if (!d) return g.status();
  Value inverse = g("MatrixInverse", {g.input(0)}, {{"adjoint", true}});
  g.set(0, g("Mul", {AsMatrices(g, d), inverse}));
  return g.status();
}

HR_OP(MatrixDeterminant)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Doc("Determinants of square matrices.")
    .Shape(ScalarsShape)
    .Gradient(DeterminantGradient)
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<LogDeterminant>>);

HR_OP(LogMatrixDeterminant)
    .Input("input: T")
    .Output("sign: T")
    .Output("log_abs_determinant: T")
    .Attr("T: {half, float, double, complex64, complex128}")
    .Doc("Signs, and logarithms of the absolute values, of determinants.")
    .Shape(ScalarsShape)
    .Gradient(LogDeterminantGradient)
    .GradientSkips({}, {0, 1})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<LogDeterminant>>);

Status LeastSquaresShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(a, 2));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  const int64_t m = FromEnd(a, 2), rows = FromEnd(b, 2);
  if (m >= 0 && rows >= 0 && m != rows) {
    return InvalidArgument("Input matrix and rhs are incompatible.");
  }
  HR_ASSIGN_OR_RETURN(Shape batch, MergeShapes(BatchOf(a), BatchOf(b)));
  c.set_output(0, WithMatrix(batch, FromEnd(a, 1), FromEnd(b, 1)));
  return OkStatus();
}

struct LeastSquares {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape &a = c.input(0).shape(), &b = c.input(1).shape();
    const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1), k = FromEnd(b, 1);
    const double penalty = *c.in<double>(2);
    if (penalty < 0) return InvalidArgument("l2_regularizer must be >= 0.");
    const bool fast = c.op().bool_attr("fast");
    return ForMatrices(
        BatchOf(a).num_elements(), 1.0 * n * n * m, [&](int64_t i) {
          return Linalg<T>::LeastSquares(c.in<T>(0) + i * m * n, m, n,
                                         c.in<T>(1) + i * m * k, k, penalty,
                                         fast, c.out<T>(0) + i * n * k);
        });
  }
};

// Of the normal equations: x = (a^H a + l2)^-1 a^H b with at least as many
// rows as columns, else x = a^H (a a^H + l2)^-1 b.
void LeastSquaresSlopes(GradientContext& g, const Value& d, bool tall,
                        const Value& l2, Value* da, Value* db) {
  const Value &a = g.input(0), &b = g.input(1), &x = g.output(0);
  Value gram = MatMul(g, a, a, tall, !tall);
  Value diagonal = g("MatrixDiagPart", {gram});
  gram = g("MatrixSetDiag", {gram, g("AddV2", {diagonal, l2})});
  if (tall) {
    // With the Gram matrix C and z = C^-1 d: dx through a^H b gives b z^H, and
    // through C gives -a (x z^H + z x^H).
    Value z = g("MatrixSolve", {gram, d});
    Value xz = MatMul(g, x, z, false, true);
    Value part = MatMul(g, a, g("AddV2", {xz, Adjoint(g, xz)}));
    *da = g("Sub", {MatMul(g, b, z, false, true), part});
    *db = MatMul(g, a, z);
    return;
  }
  Value z = g("MatrixSolve", {gram, MatMul(g, a, d)});
  Value w = g("MatrixSolve", {gram, b});
  Value first = MatMul(g, w, g("Sub", {d, MatMul(g, a, z, true)}), false, true);
  *da = g("Sub", {first, MatMul(g, z, x, false, true)});
  *db = z;
}

Status LeastSquaresGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Shape& a = g.input(0).shape();
  const int64_t m = FromEnd(a, 2), n = FromEnd(a, 1);
  // The penalty is a double whatever the matrix' type is.
  Value l2 = g("Cast", {g.input(2)}, {{"DstT", g.input(0).dtype()}});
  Value da, db;
  if (m >= 0 && n >= 0) {
    LeastSquaresSlopes(g, d, m >= n, l2, &da, &db);
  } else {
    // Both, and the one that turns out right; 1 keeps the other's system
    // regular.
    Value tall = g("GreaterEqual", {SizeFromEnd(g, g.input(0), 2),
                                    SizeFromEnd(g, g.input(0), 1)});
    Value more = g("AddV2", {l2, g.Scalar(l2.dtype(), 1)});
    Value wide_da, wide_db;
    LeastSquaresSlopes(g, d, true, g("SelectV2", {tall, l2, more}), &da, &db);
    LeastSquaresSlopes(g, d, false, g("SelectV2", {tall, more, l2}), &wide_da,
                       &wide_db);
    da = g("SelectV2", {tall, da, wide_da});
    db = g("SelectV2", {tall, db, wide_db});
  }
  g.set(0, da);
  g.set(1, db);
  return g.status();
}

HR_OP(MatrixSolveLs)
    .Input("matrix: T")
    .Input("rhs: T")
    .Input("l2_regularizer: double")
    .Output("output: T")
    .Attr(kMatrixTypes)
    .Attr("fast: bool = true")
    .Doc("Solutions of linear equations by least squares.")
    .Shape(LeastSquaresShape)
    .Gradient(LeastSquaresGradient)
    .Cpu(ComputeFor<PickMatrix<LeastSquares>>);

[[maybe_unused]] const bool kOldSolvers[] = {
    RegisterLike("BatchMatrixInverse", "MatrixInverse",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "MatrixInverse",
                                {DType::kDouble, DType::kFloat});
                 }),
    RegisterLike(
        "BatchMatrixSolve", "MatrixSolve",
        [](OpDef& def) {
          UntilVersion(def, 13, "MatrixSolve", {DType::kDouble, DType::kFloat});
        }),
    RegisterLike("BatchMatrixTriangularSolve", "MatrixTriangularSolve",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "MatrixTriangularSolve",
                                {DType::kDouble, DType::kFloat});
                 }),
    RegisterLike("BatchMatrixDeterminant", "MatrixDeterminant",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "MatrixDeterminant",
                                {DType::kFloat, DType::kDouble,
                                 DType::kComplex64, DType::kComplex128});
                 }),
    RegisterLike("BatchMatrixSolveLs", "MatrixSolveLs",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "MatrixSolveLs",
                                {DType::kDouble, DType::kFloat});
                 }),
};

}  // namespace
}  // namespace headrace
