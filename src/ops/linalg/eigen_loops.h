// Eigen's decompositions, one set a level of the instruction set: orthogonal
// factors, least squares, hermitian eigenvalues, complex systems. Matrices are
// row-major; all runs on one thread.
#pragma once

#include <complex>
#include <cstdint>

#include "base/cpu_level.h"

namespace headrace {

// T is float, double, complex64 or complex128.
template <typename T>
struct EigenLoops {
  // a[m, n] = q r; q is [m, m] when `full`, else [m, min]. Neither m nor n is
  // 0, here and below.
  void (*qr)(const T* a, int64_t m, int64_t n, bool full, T* q, T* r);
  // The shortest least squares solution x[n, k] of a[m, n] x = b[m, k], by a
  // complete orthogonal decomposition.
  void (*least_squares)(const T* a, int64_t m, int64_t n, const T* b, int64_t k,
                        T* x);
  // Eigenvalues, rising, and vectors (unless v is null) of the lower triangle
  // of a[n, n]; false where the iteration does not end. Computed in double.
  bool (*self_adjoint_eig)(const T* a, int64_t n, T* e, T* v);
  // x[n, m] with a x = b, or adjoint(a) x = b; false where a has no inverse.
  // For complex types alone; decompositions.cc has its own for the others.
  bool (*solve)(const T* a, int64_t n, const T* b, int64_t m, bool adjoint,
                T* x);
};

// Those of this machine.
template <typename T>
const EigenLoops<T>& LoopsForEigen();

// What the files of a level give away.
template <CpuLevel kLevel>
const EigenLoops<float>* EigenFloat();
template <CpuLevel kLevel>
const EigenLoops<double>* EigenDouble();
template <CpuLevel kLevel>
const EigenLoops<std::complex<float>>* EigenComplex64();
template <CpuLevel kLevel>
const EigenLoops<std::complex<double>>* EigenComplex128();

}  // namespace headrace
