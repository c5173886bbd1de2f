#include <algorithm>
#include <limits>

#include "ops/linalg/matrix_functions.h"
#include "ops/linalg/spectral_eigen.h"
#include "ops/linalg/svd.h"

namespace headrace {
namespace {

// Whether no real matrix is a root: an eigenvalue is a negative number, or none
// were found.
template <typename T>
bool HasNoRealRoot(const T* a, int64_t n) {
  Eigen::RealSchur<spectral::Matrix<T>> schur(spectral::Read<T>(a, n, n),
                                              false);
  if (schur.info() != Eigen::Success) return true;
  const auto& t = schur.matrixT();
  for (int64_t i = 0; i < n; ++i) {
    // A real Schur form has blocks of two rows for pairs of complex
    // eigenvalues; only single ones can be negative numbers.
    const bool pair =
        (i > 0 && t(i, i - 1) != T(0)) || (i + 1 < n && t(i + 1, i) != T(0));
    if (!pair && t(i, i) < T(0)) return true;
  }
  return false;
}

// Of a real matrix; NaN where no real root is.
template <typename T>
Status RealRoot(const T* a, int64_t n, T* out) {
  if (n == 0) return OkStatus();
  if (HasNoRealRoot(a, n)) {
    std::fill_n(out, n * n, std::numeric_limits<T>::quiet_NaN());
    return OkStatus();
  }
  ComplexMatrix u, t;
  if (!ComplexSchur(ComplexMatrix(a, a + n * n), n, &u, &t)) {
    return spectral::NoAnswer("Schur");
  }
  // The root is real here; the imaginary parts are rounding.
  const ComplexMatrix root = FromSchur(u, TriangularRoot(t, n), n);
  for (int64_t i = 0; i < n * n; ++i) out[i] = static_cast<T>(root[i].real());
  return OkStatus();
}

}  // namespace

template <std::floating_point T>
Status Spectral<T>::SelfAdjointEig(const T* a, int64_t n, T* e, T* v) {
  return spectral::SelfAdjointEig(a, n, e, v);
}
template <std::floating_point T>
Status Spectral<T>::Svd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u,
                        T* v) {
  return RealSvd(a, m, n, full, s, u, v);
}
template <std::floating_point T>
Status Spectral<T>::Eig(const T* a, int64_t n, std::complex<T>* e,
                        std::complex<T>* v) {
  using Solver = Eigen::EigenSolver<spectral::Matrix<double>>;
  return spectral::Eig<Solver, double>(a, n, e, v);
}
template <std::floating_point T>
Status Spectral<T>::SquareRoot(const T* a, int64_t n, T* out) {
  return RealRoot(a, n, out);
}
template <std::floating_point T>
Status Spectral<T>::Logarithm(const T*, int64_t, T*) {
  return Unimplemented("the logarithm of a real matrix");
}
template struct Spectral<double>;
template struct Spectral<float>;

}  // namespace headrace
