#include "ops/linalg/matrix_functions.h"
#include "ops/linalg/spectral_eigen.h"
#include "ops/linalg/svd.h"

namespace headrace {
namespace {

// Of a real matrix, which must have a real root.
template <typename T>
Status RealRoot(const T* a, int64_t n, T* out) {
  if (n == 0) return OkStatus();
  ComplexMatrix u, t;
  if (!ComplexSchur(ComplexMatrix(a, a + n * n), n, &u, &t)) {
    return spectral::NoAnswer("Schur");
  }
  const ComplexMatrix root = FromSchur(u, TriangularRoot(t, n), n);
  for (int64_t i = 0; i < n * n; ++i) out[i] = static_cast<T>(root[i].real());
  return OkStatus();
}

}  // namespace

#define HR_REAL_SPECTRAL(T)                                                  \
  template <>                                                                \
  Status Spectral<T>::SelfAdjointEig(const T* a, int64_t n, T* e, T* v) {    \
    return spectral::SelfAdjointEig(a, n, e, v);                             \
  }                                                                          \
  template <>                                                                \
  Status Spectral<T>::Svd(const T* a, int64_t m, int64_t n, bool full, T* s, \
                          T* u, T* v) {                                      \
    return RealSvd(a, m, n, full, s, u, v);                                  \
  }                                                                          \
  template <>                                                                \
  Status Spectral<T>::Eig(const T* a, int64_t n, std::complex<T>* e,         \
                          std::complex<T>* v) {                              \
    using Solver = Eigen::EigenSolver<spectral::Matrix<double>>;             \
    return spectral::Eig<Solver, double>(a, n, e, v);                        \
  }                                                                          \
  template <>                                                                \
  Status Spectral<T>::SquareRoot(const T* a, int64_t n, T* out) {            \
    return RealRoot(a, n, out);                                              \
  }                                                                          \
  template <>                                                                \
  Status Spectral<T>::Logarithm(const T*, int64_t, T*) {                     \
    return Unimplemented("the logarithm of a real matrix");                  \
  }
HR_REAL_SPECTRAL(double)
HR_REAL_SPECTRAL(float)

}  // namespace headrace
