// The bodies of Spectral<T>, by Eigen; one .cc file for double and one for
// complex128 include it. float and complex64 convert.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "Eigen/Eigenvalues"
#include "Eigen/SVD"
#include "ops/linalg/decompositions.h"
#include "ops/linalg/eigen_loops.h"

namespace headrace::spectral {
namespace {

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename W, typename T>
Matrix<W> Read(const T* a, int64_t m, int64_t n) {
  return Eigen::Map<const Matrix<T>>(a, m, n).template cast<W>();
}
template <typename T, typename M>
void Write(const M& from, T* to) {
  Eigen::Map<Matrix<T>>(to, from.rows(), from.cols()) = from.template cast<T>();
}

Status NoAnswer(const char* what) {
  return InvalidArgument(
      what, " decomposition was not successful. The input might not be valid.");
}

template <typename T>
Status SelfAdjointEig(const T* a, int64_t n, T* e, T* v) {
  if (n == 0 || LoopsForEigen<T>().self_adjoint_eig(a, n, e, v)) {
    return OkStatus();
  }
  return NoAnswer("Self-adjoint eigen");
}

// W is the type computed in.
template <typename W, typename T>
Status Svd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u, T* v) {
  const int64_t k = std::min(m, n), us = full ? m : k, vs = full ? n : k;
  if (k == 0) {
    // Without singular values any orthogonal matrices do.
    if (u) Write(Matrix<W>(Matrix<W>::Identity(m, us)), u);
    if (v) Write(Matrix<W>(Matrix<W>::Identity(n, vs)), v);
    return OkStatus();
  }
  const Matrix<W> matrix = Read<W>(a, m, n);
  // The iteration would not end on NaNs.
  if (!matrix.allFinite()) {
    std::fill_n(s, k, T(NAN));
    if (u) std::fill_n(u, m * us, T(NAN));
    if (v) std::fill_n(v, n * vs, T(NAN));
    return OkStatus();
  }
  unsigned flags = 0;
  if (u) {
    flags = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                 : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  Eigen::BDCSVD<Matrix<W>> svd(matrix, flags);
  Write(Matrix<W>(svd.singularValues().template cast<W>()), s);
  if (u) Write(svd.matrixU(), u);
  if (v) Write(svd.matrixV(), v);
  return OkStatus();
}

// Solver is Eigen's for real or for complex matrices.
template <typename Solver, typename W, typename T>
Status Eig(const T* a, int64_t n, std::complex<Real<T>>* e,
           std::complex<Real<T>>* v) {
  if (n == 0) return OkStatus();
  Solver eig(Read<W>(a, n, n), v != nullptr);
  if (eig.info() != Eigen::Success) return NoAnswer("Eigen");
  const auto values = eig.eigenvalues();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  // Values are sorted by size (and angle), so that their order does not depend
  // on the way of the iteration. Upstream leaves them as they come.
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const auto x = std::abs(values(i)), y = std::abs(values(j));
    return x != y ? x < y : std::arg(values(i)) < std::arg(values(j));
  });
  using C = std::complex<Real<T>>;
  for (int64_t i = 0; i < n; ++i) e[i] = static_cast<C>(values(order[i]));
  if (v == nullptr) return OkStatus();
  const auto vectors = eig.eigenvectors();
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      v[i * n + j] = static_cast<C>(vectors(i, order[j]));
    }
  }
  return OkStatus();
}

}  // namespace
}  // namespace headrace::spectral
