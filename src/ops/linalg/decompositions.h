// Dense decompositions and solvers of one row-major matrix at a time, for
// float, double, complex64 and complex128. Adjoint means conjugate transpose.
// InvalidArgument, with upstream's texts, for input that has no answer.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>

#include "base/status.h"

namespace headrace {

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealOf<T>::type;

// Triangular factors by our own loops and what is solved with them; orthogonal
// ones by Eigen.
template <typename T>
struct Linalg {
  // out = inverse of a[n, n], or of its adjoint.
  static Status Invert(const T* a, int64_t n, bool adjoint, T* out);
  // x[n, m] with a x = b, or adjoint(a) x = b.
  static Status Solve(const T* a, int64_t n, const T* b, int64_t m,
                      bool adjoint, T* x);
  // The same by one triangle of a. x may be b.
  static Status SolveTriangular(const T* a, int64_t n, const T* b, int64_t m,
                                bool lower, bool adjoint, T* x);
  // l l^H = a, from a's lower triangle.
  static Status Cholesky(const T* a, int64_t n, T* l);
  // det(a) = sign * exp(log_abs).
  static Status LogDeterminant(const T* a, int64_t n, T* sign, T* log_abs);
  // a[m, n] = q r; q is [m, m] when `full`, else [m, min].
  static void Qr(const T* a, int64_t m, int64_t n, bool full, T* q, T* r);
  // Row p[i] of a is row i of l u; both lie in lu.
  static Status Lu(const T* a, int64_t n, T* lu, int64_t* p);
  // x[n, k]: least squares of a[m, n] x = b[m, k] with a penalty; by normal
  // equations when `fast`, else the shortest one, by orthogonal factors.
  static Status LeastSquares(const T* a, int64_t m, int64_t n, const T* b,
                             int64_t k, double penalty, bool fast, T* x);
};

// By Eigen, in double precision, float through double; singular values of real
// matrices by svd.h. What takes long is compiled once a level of the
// instruction set (eigen_loops.h).
template <typename T>
struct Spectral;
template <std::floating_point T>
struct Spectral<T> {
  // Eigenvalues, rising, and vectors (unless v is null) of a hermitian matrix,
  // from its lower triangle.
  static Status SelfAdjointEig(const T* a, int64_t n, T* e, T* v);
  // a[m, n] = u diag(s) v^H; u and v may be null together.
  static Status Svd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u,
                    T* v);
  // Eigenvalues and vectors (unless null) of any square matrix, rising by
  // absolute value.
  static Status Eig(const T* a, int64_t n, std::complex<T>* e,
                    std::complex<T>* v);
  static Status SquareRoot(const T* a, int64_t n, T* out);
  static Status Logarithm(const T* a, int64_t n, T* out);  // Unimplemented
};
// The same of complex matrices, which have a logarithm.
template <std::floating_point R>
struct Spectral<std::complex<R>> {
  using T = std::complex<R>;
  static Status SelfAdjointEig(const T* a, int64_t n, T* e, T* v);
  static Status Svd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u,
                    T* v);
  static Status Eig(const T* a, int64_t n, T* e, T* v);
  static Status SquareRoot(const T* a, int64_t n, T* out);
  static Status Logarithm(const T* a, int64_t n, T* out);
};

}  // namespace headrace
