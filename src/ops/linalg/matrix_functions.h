// Functions of triangular complex matrices, for the square root and the
// logarithm by way of Schur's form a = u t u^H.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace headrace {

using ComplexMatrix = std::vector<std::complex<double>>;  // row-major n x n

// The upper triangular root of upper triangular t.
ComplexMatrix TriangularRoot(const ComplexMatrix& t, int64_t n);
// The logarithm of upper triangular t, by roots and a quadrature of log.
ComplexMatrix TriangularLog(ComplexMatrix t, int64_t n);

// a = u t u^H; false when the iteration does not end.
bool ComplexSchur(const ComplexMatrix& a, int64_t n, ComplexMatrix* u,
                  ComplexMatrix* t);
// u t u^H.
ComplexMatrix FromSchur(const ComplexMatrix& u, const ComplexMatrix& t,
                        int64_t n);

}  // namespace headrace
