// Eigen under a namespace of the level's, so that no level's code serves
// another. Its matrices here are column-major, as its own loops run fastest.
#include "ops/linalg/eigen_loops.h"

// Its threads (OpenMP) would compete with the pool's.
#define EIGEN_DONT_PARALLELIZE
#include "Eigen/Eigenvalues"
#include "Eigen/LU"
#include "Eigen/QR"

namespace headrace::HR_LEVEL {
namespace {

template <typename T>
using Columns = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
Eigen::Map<const Rows<T>> Read(const T* a, int64_t m, int64_t n) {
  return {a, m, n};
}
template <typename T>
Eigen::Map<Rows<T>> Place(T* a, int64_t m, int64_t n) {
  return {a, m, n};
}

template <typename T>
struct Wide {
  using type = double;
};
template <typename T>
struct Wide<std::complex<T>> {
  using type = std::complex<double>;
};
// What T's eigenvalues are computed in, and what its orthogonal factors are:
// complex64 is rare enough to be served by the code of complex128.
template <typename T>
using ForEigenvalues = typename Wide<T>::type;
template <typename T>
struct FactorsOf {
  using type = T;
};
template <>
struct FactorsOf<std::complex<float>> {
  using type = std::complex<double>;
};
template <typename T>
using ForFactors = typename FactorsOf<T>::type;

template <typename T>
void Qr(const T* a, int64_t m, int64_t n, bool full, T* q, T* r) {
  using W = ForFactors<T>;
  const int64_t least = m < n ? m : n, columns = full ? m : least;
  const Eigen::HouseholderQR<Columns<W>> qr(Read(a, m, n).template cast<W>());
  // Multiplied by as many columns of the identity as are asked for: the full q
  // is never made for a thin one.
  const Columns<W> made = qr.householderQ() * Columns<W>::Identity(m, columns);
  Place(q, m, columns) = made.template cast<T>();
  auto to_r = Place(r, columns, n);
  to_r.setZero();
  // Below the diagonal Eigen keeps its reflections, which are no part of r.
  for (int64_t i = 0; i < least; ++i) {
    for (int64_t j = i; j < n; ++j) to_r(i, j) = T(qr.matrixQR()(i, j));
  }
}

template <typename T>
void LeastSquares(const T* a, int64_t m, int64_t n, const T* b, int64_t k,
                  T* x) {
  using W = ForFactors<T>;
  const Eigen::CompleteOrthogonalDecomposition<Columns<W>> factors(
      Read(a, m, n).template cast<W>());
  const Columns<W> made =
      factors.solve(Columns<W>(Read(b, m, k).template cast<W>()));
  Place(x, n, k) = made.template cast<T>();
}

template <typename T>
bool SelfAdjointEig(const T* a, int64_t n, T* e, T* v) {
  using W = ForEigenvalues<T>;
  const Eigen::SelfAdjointEigenSolver<Columns<W>> eig(
      Read(a, n, n).template cast<W>(),
      v ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (eig.info() != Eigen::Success) return false;
  for (int64_t i = 0; i < n; ++i) e[i] = static_cast<T>(eig.eigenvalues()[i]);
  if (v) Place(v, n, n) = eig.eigenvectors().template cast<T>();
  return true;
}

template <typename T>
bool Solve(const T* a, int64_t n, const T* b, int64_t m, bool adjoint, T* x) {
  Columns<T> matrix = Read(a, n, n);
  if (adjoint) matrix.adjointInPlace();
  const Eigen::PartialPivLU<Columns<T>> lu(matrix);
  for (int64_t i = 0; i < n; ++i) {
    const T pivot = lu.matrixLU()(i, i);
    // NaNs are no pivots either.
    if (!(pivot.real() != 0 || pivot.imag() != 0) || pivot != pivot) {
      return false;
    }
  }
  const Columns<T> made = lu.solve(Columns<T>(Read(b, n, m)));
  Place(x, n, m) = made;
  return true;
}

template <typename T>
constexpr EigenLoops<T> kLoops = {Qr<T>, LeastSquares<T>, SelfAdjointEig<T>,
                                  nullptr};
template <typename T>
constexpr EigenLoops<std::complex<T>> kLoops<std::complex<T>> = {
    Qr<std::complex<T>>, LeastSquares<std::complex<T>>,
    SelfAdjointEig<std::complex<T>>, Solve<std::complex<T>>};

}  // namespace
}  // namespace headrace::HR_LEVEL

namespace headrace {
using namespace HR_LEVEL;

template <>
const EigenLoops<float>* EigenFloat<CpuLevel::HR_LEVEL>() {
  return &kLoops<float>;
}
template <>
const EigenLoops<double>* EigenDouble<CpuLevel::HR_LEVEL>() {
  return &kLoops<double>;
}
template <>
const EigenLoops<std::complex<float>>* EigenComplex64<CpuLevel::HR_LEVEL>() {
  return &kLoops<std::complex<float>>;
}
template <>
const EigenLoops<std::complex<double>>* EigenComplex128<CpuLevel::HR_LEVEL>() {
  return &kLoops<std::complex<double>>;
}

}  // namespace headrace
