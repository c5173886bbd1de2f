#include "ops/linalg/matrix_functions.h"
#include "ops/linalg/spectral_eigen.h"

namespace headrace {

using C = std::complex<double>;

bool ComplexSchur(const ComplexMatrix& a, int64_t n, ComplexMatrix* u,
                  ComplexMatrix* t) {
  Eigen::ComplexSchur<spectral::Matrix<C>> schur(
      spectral::Read<C>(a.data(), n, n));
  if (schur.info() != Eigen::Success) return false;
  u->resize(n * n);
  t->resize(n * n);
  spectral::Write(schur.matrixU(), u->data());
  spectral::Write(schur.matrixT(), t->data());
  return true;
}

namespace {

template <typename T>
Status Function(const T* a, int64_t n, T* out, bool log) {
  if (n == 0) return OkStatus();
  ComplexMatrix u, t;
  if (!ComplexSchur(ComplexMatrix(a, a + n * n), n, &u, &t)) {
    return spectral::NoAnswer("Schur");
  }
  // With a = u t u^H a function of a is u f(t) u^H, and f(t) is upper
  // triangular, too.
  const ComplexMatrix made =
      FromSchur(u, log ? TriangularLog(t, n) : TriangularRoot(t, n), n);
  for (int64_t i = 0; i < n * n; ++i) out[i] = static_cast<T>(made[i]);
  return OkStatus();
}

}  // namespace

template <std::floating_point R>
Status Spectral<std::complex<R>>::SelfAdjointEig(const T* a, int64_t n, T* e,
                                                 T* v) {
  return spectral::SelfAdjointEig(a, n, e, v);
}
template <std::floating_point R>
Status Spectral<std::complex<R>>::Svd(const T* a, int64_t m, int64_t n,
                                      bool full, T* s, T* u, T* v) {
  return spectral::Svd<C>(a, m, n, full, s, u, v);
}
template <std::floating_point R>
Status Spectral<std::complex<R>>::Eig(const T* a, int64_t n, T* e, T* v) {
  using Solver = Eigen::ComplexEigenSolver<spectral::Matrix<C>>;
  return spectral::Eig<Solver, C>(a, n, e, v);
}
template <std::floating_point R>
Status Spectral<std::complex<R>>::SquareRoot(const T* a, int64_t n, T* out) {
  return Function(a, n, out, false);
}
template <std::floating_point R>
Status Spectral<std::complex<R>>::Logarithm(const T* a, int64_t n, T* out) {
  return Function(a, n, out, true);
}
template struct Spectral<std::complex<double>>;
template struct Spectral<std::complex<float>>;

}  // namespace headrace
