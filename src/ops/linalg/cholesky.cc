// Cholesky and CholeskyGrad; MatrixSquareRoot, MatrixLogarithm.
#include <limits>

#include "op/vectorize.h"
#include "ops/linalg/matrix_op.h"
#include "ops/linalg/old_forms.h"

namespace headrace {
namespace {

// An op from square matrices to square matrices.
template <typename T>
using SquareFn = Status (*)(const T* a, int64_t n, T* out);

template <typename T>
Status RunSquare(KernelContext& c, SquareFn<T> fn) {
  const Shape& a = c.input(0).shape();
  const int64_t n = FromEnd(a, 1);
  // About n^3 multiplications, a nanosecond each.
  return ForMatrices(
      BatchOf(a).num_elements(), 1.0 * n * n * n, [&](int64_t i) {
        return fn(c.in<T>(0) + i * n * n, n, c.out<T>(0) + i * n * n);
      });
}

// The factor; not-a-number in its triangle where there is none, as upstream.
template <typename T>
Status FactorOrNan(const T* a, int64_t n, T* out) {
  const Status status = Linalg<T>::Cholesky(a, n, out);
  // Other errors, as a lack of memory, are no matter of the matrix.
  if (!absl::IsInvalidArgument(status)) return status;
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  for (int64_t i = 0; i < n; ++i) {
    std::fill_n(out + i * n, i + 1, nan);
    std::fill_n(out + i * n + i + 1, n - i - 1, T(0));
  }
  return OkStatus();
}

struct CholeskyOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    return RunSquare<T>(c, FactorOrNan<T>);
  }
};
struct SquareRootOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    return RunSquare<T>(c, Spectral<T>::SquareRoot);
  }
};
struct LogarithmOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    return RunSquare<T>(c, Spectral<T>::Logarithm);
  }
};

// The gradient for the input of a factor l and what arrives at l.
Value CholeskyBack(OpScope& g, const Value& l, const Value& d) {
  // Murray, "Differentiation of the Cholesky decomposition" (2016): with Phi
  // the lower triangle with half its diagonal, the gradient is the symmetric
  // part of l^-H Phi(l^H d) l^-1.
  Value middle = Triangle(g, HalfDiagonal(g, MatMul(g, l, d, true)), true);
  // l^-H middle l^-1, by two solves.
  Value left = g("MatrixTriangularSolve", {l, middle}, {{"adjoint", true}});
  Value right =
      g("MatrixTriangularSolve", {l, Adjoint(g, left)}, {{"adjoint", true}});
  Value both = g("AddV2", {right, Adjoint(g, right)});
  return g("Mul", {both, g.Scalar(l.dtype(), 0.5)});
}

Status CholeskyGradient(GradientContext& g) {
  if (Value d = g.grad()) g.set(0, CholeskyBack(g, g.output(0), d));
  return g.status();
}

HR_OP(Cholesky)
    .Input("input: T")
    .Output("output: T")
    .Attr(kMatrixTypes)
    .Doc("Lower triangular factors of positive definite matrices.")
    .Shape(SquareShape)
    .Gradient(CholeskyGradient)
    .GradientSkips({0}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<CholeskyOp>>);

// Phi: the lower triangle with half of the diagonal.
template <typename T>
void HalfLower(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = a[i * n + i] / T(2);
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = T(0);
  }
}

template <typename T>
void Turn(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
  }
}

// One matrix of CholeskyGrad, real types.
template <typename T>
Status GradOfOne(const T* l, const T* d, int64_t n, T* out) {
  std::vector<T> middle(n * n), left(n * n);
  for (int64_t i = 0; i < n; ++i) {
    // Row i of l^T begins at its diagonal, and columns of d end there: nothing
    // else of either is in the triangle.
    for (int64_t p = i; p < n; ++p) {
      for (int64_t j = 0; j <= p; ++j) {
        middle[i * n + j] += l[p * n + i] * d[p * n + j];
      }
    }
  }
  HalfLower(middle.data(), n);
  HR_RETURN_IF_ERROR(Linalg<T>::SolveTriangular(l, n, middle.data(), n, true,
                                                true, left.data()));
  // The solver works from the left; the product with l^-1 from the right is one
  // from the left on the transpose.
  Turn(left.data(), n);
  HR_RETURN_IF_ERROR(
      Linalg<T>::SolveTriangular(l, n, left.data(), n, true, true, out));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const T v = (out[i * n + j] + out[j * n + i]) / 2;
      out[i * n + j] = out[j * n + i] = v;
    }
  }
  return OkStatus();
}

struct CholeskyGradOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const int64_t n = FromEnd(c.input(0).shape(), 1);
    return ForMatrices(BatchOf(c.input(0).shape()).num_elements(),
                       2.0 * n * n * n, [&](int64_t i) {
                         const int64_t at = i * n * n;
                         return GradOfOne(c.in<T>(0) + at, c.in<T>(1) + at, n,
                                          c.out<T>(0) + at);
                       });
  }
};

Status CholeskyGradShape(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape s, MergeShapes(c.input(0), c.input(1)));
  HR_RETURN_IF_ERROR(CheckSquare(c, s));
  c.set_output(0, std::move(s));
  return OkStatus();
}

HR_OP(CholeskyGrad)
    .Input("l: T")
    .Input("grad: T")
    .Output("output: T")
    .Attr("T: {half, float, double}")
    .Doc("The gradient of Cholesky for its input.")
    .Shape(CholeskyGradShape)
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<CholeskyGradOp, TypeList<float, double>>>);

[[maybe_unused]] const bool kOldCholesky[] = {
    RegisterLike(
        "BatchCholesky", "Cholesky",
        [](OpDef& def) {
          UntilVersion(def, 13, "Cholesky", {DType::kDouble, DType::kFloat});
        }),
    RegisterLike("BatchCholeskyGrad", "CholeskyGrad",
                 [](OpDef& def) {
                   UntilVersion(def, 13, "CholeskyGrad",
                                {DType::kFloat, DType::kDouble});
                 }),
};

// With s the root: s^H g + g s^H = d, a linear system of n^2 unknowns.
Status SquareRootGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& y = g.output(0);
  Value n = SizeFromEnd(g, y, 1), one = g.Int32(1), any = g.Int32(-1);
  // Row-major vec: vec(a x b) = (a kron b^T) vec(x).
  Value eye = g(
      "MatrixDiag",
      {g("Fill", {g("Reshape", {n, g.Int32s({1})}), g.Scalar(y.dtype(), 1)})});
  auto shaped = [&](const Value& v, const std::vector<Value>& sizes) {
    return g("Reshape", {v, g("Pack", sizes)});
  };
  Value square = g("Mul", {n, n});
  // a[i, ., j, .] * b[., k, ., l]
  auto kron = [&](const Value& a, const Value& b) {
    Value product = g("Mul", {shaped(a, {any, n, one, n, one}),
                              shaped(b, {any, one, n, one, n})});
    return shaped(product, {any, square, square});
  };
  Value root = Adjoint(g, y);
  Value turned = IsComplex(y.dtype()) ? g("Conj", {y}) : y;
  Value system = g("AddV2", {kron(root, eye), kron(eye, turned)});
  Value solved = g("MatrixSolve", {system, shaped(d, {any, square, one})});
  g.set(0, g("Reshape", {solved, g.ShapeOf(y)}));
  return g.status();
}

HR_OP(MatrixSquareRoot)
    .Input("input: T")
    .Output("output: T")
    .Attr(kMatrixTypes)
    .Doc("Matrices whose squares are the inputs.")
    .Shape(SquareShape)
    .Gradient(SquareRootGradient)
    .GradientSkips({0}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<SquareRootOp>>);

HR_OP(MatrixLogarithm)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: {complex64, complex128}")
    .Doc("Logarithms of square matrices.")
    .Shape(SquareShape)
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<LogarithmOp, ComplexTypes>>);

}  // namespace
}  // namespace headrace
