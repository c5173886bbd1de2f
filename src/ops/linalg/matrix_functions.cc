#include "ops/linalg/matrix_functions.h"

#include <algorithm>
#include <cmath>

namespace headrace {
namespace {

using C = std::complex<double>;

// x with t x = b for upper triangular t, in place of b [n, n] upper.
void SolveUpper(const ComplexMatrix& t, ComplexMatrix& b, int64_t n) {
  for (int64_t i = n; i-- > 0;) {
    for (int64_t j = i; j < n; ++j) {
      C sum = b[i * n + j];
      // b stays upper triangular, so nothing behind column j's diagonal counts.
      for (int64_t p = i + 1; p <= j; ++p) sum -= t[i * n + p] * b[p * n + j];
      b[i * n + j] = sum / t[i * n + i];
    }
  }
}

// The largest column sum of t - 1.
double DistanceFromOne(const ComplexMatrix& t, int64_t n) {
  double most = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i <= j; ++i) {
      sum += std::abs(t[i * n + j] - (i == j ? 1.0 : 0.0));
    }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

ComplexMatrix TriangularRoot(const ComplexMatrix& t, int64_t n) {
  ComplexMatrix r(n * n);
  for (int64_t j = 0; j < n; ++j) {
    r[j * n + j] = std::sqrt(t[j * n + j]);
    for (int64_t i = j; i-- > 0;) {
      C sum = t[i * n + j];
      for (int64_t p = i + 1; p < j; ++p) sum -= r[i * n + p] * r[p * n + j];
      // Bjoerck and Hammarling's recurrence (1983), column by column upwards.
      r[i * n + j] = sum / (r[i * n + i] + r[j * n + j]);
    }
  }
  return r;
}

ComplexMatrix TriangularLog(ComplexMatrix t, int64_t n) {
  int roots = 0;
  // Inverse scaling and squaring: log(t) = 2^k log(t^(1/2^k)), with roots taken
  // until the matrix is near the identity. The limit is for matrices that never
  // come near, as those with NaNs.
  for (; roots < 100 && DistanceFromOne(t, n) > 0.25; ++roots) {
    t = TriangularRoot(t, n);
  }
  // log(1 + x) is the integral of x (1 + s x)^-1 over s in [0, 1]: Gauss's
  // rule with 8 points, on [-1, 1] these and their negatives.
  constexpr double kNodes[] = {0.18343464249564980, 0.52553240991632899,
                               0.79666647741362674, 0.96028985649753623};
  constexpr double kWeights[] = {0.36268378337836198, 0.31370664587788729,
                                 0.22238103445337447, 0.10122853629037626};
  ComplexMatrix x = t, sum(n * n);
  for (int64_t i = 0; i < n; ++i) x[i * n + i] -= 1.0;
  for (int k = 0; k < 8; ++k) {
    // From [-1, 1] to [0, 1]; the weights halve with the length.
    const double s = 0.5 + 0.5 * (k < 4 ? kNodes[k] : -kNodes[k - 4]);
    const double w = 0.5 * kWeights[k % 4];
    ComplexMatrix system(n * n), part = x;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i; j < n; ++j) {
        system[i * n + j] = s * x[i * n + j] + (i == j ? 1.0 : 0.0);
      }
    }
    SolveUpper(system, part, n);
    for (int64_t i = 0; i < n * n; ++i) sum[i] += w * part[i];
  }
  const double scale = std::ldexp(1.0, roots);
  for (C& v : sum) v *= scale;
  return sum;
}

ComplexMatrix FromSchur(const ComplexMatrix& u, const ComplexMatrix& t,
                        int64_t n) {
  ComplexMatrix ut(n * n), out(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t p = 0; p < n; ++p) {
      // t is upper triangular.
      for (int64_t j = p; j < n; ++j) {
        ut[i * n + j] += u[i * n + p] * t[p * n + j];
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      C sum = 0;
      for (int64_t p = 0; p < n; ++p) {
        sum += ut[i * n + p] * std::conj(u[j * n + p]);
      }
      out[i * n + j] = sum;
    }
  }
  return out;
}

}  // namespace headrace
