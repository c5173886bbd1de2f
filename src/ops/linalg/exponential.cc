// MatrixExponential, of graphs of old versions (tf.linalg.matrix_exponential is
// made of other ops): N. Higham, The Scaling and Squaring Method for the Matrix
// Exponential Revisited, SIAM J. Matrix Anal. Appl. 26(4), 2005.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/linalg/matrix_op.h"
#include "ops/math/products/gemm.h"

namespace headrace {
namespace {

// Coefficients of the rational approximation of degree 13, and the norm up to
// which its error is below a double's precision (Higham's table 2.3).
constexpr double kRational[] = {64764752532480000.,
                                32382376266240000.,
                                7771770303897600.,
                                1187353796428800.,
                                129060195264000.,
                                10559470521600.,
                                670442572800.,
                                33522128640.,
                                1323241920.,
                                40840800.,
                                960960.,
                                16380.,
                                182.,
                                1.};
constexpr double kMostNorm = 5.371920351148152;

template <typename W>
class SquareMatrix {
 public:
  explicit SquareMatrix(int64_t n) : n_(n), e_(n * n) {}
  W* row(int64_t i) { return e_.data() + i * n_; }
  const W* row(int64_t i) const { return e_.data() + i * n_; }
  W* begin() { return e_.data(); }
  const W* begin() const { return e_.data(); }
  int64_t n() const { return n_; }

  // this += c m
  void Add(double c, const SquareMatrix& m) {
    for (int64_t i = 0; i < n_ * n_; ++i) e_[i] += c * m.e_[i];
  }
  void Scale(double c) {
    for (W& e : e_) e *= c;
  }
  // this += c I
  void AddIdentity(double c) {
    for (int64_t i = 0; i < n_; ++i) row(i)[i] += c;
  }
  // The largest sum of magnitudes in a column.
  double Norm() const {
    std::vector<double> sums(n_);
    for (int64_t i = 0; i < n_ * n_; ++i) sums[i % n_] += std::abs(e_[i]);
    return n_ == 0 ? 0 : *std::max_element(sums.begin(), sums.end());
  }

 private:
  int64_t n_;
  std::vector<W> e_;
};

template <typename W>
StatusOr<SquareMatrix<W>> Product(const SquareMatrix<W>& a,
                                  const SquareMatrix<W>& b) {
  const int64_t n = a.n();
  SquareMatrix<W> product(n);
  HR_RETURN_IF_ERROR(Gemm(DTypeOf<W>, GemmDims::Dense(n, n, n, false, false),
                          a.begin(), b.begin(), product.begin()));
  return product;
}

// The odd and the even part of the approximation's numerator, for small a.
template <typename W>
Status Parts(const SquareMatrix<W>& a, SquareMatrix<W>* odd,
             SquareMatrix<W>* even) {
  const double* c = kRational;
  HR_ASSIGN_OR_RETURN(const SquareMatrix<W> a2, Product(a, a));
  HR_ASSIGN_OR_RETURN(const SquareMatrix<W> a4, Product(a2, a2));
  HR_ASSIGN_OR_RETURN(const SquareMatrix<W> a6, Product(a4, a2));
  const auto sum = [&](int first, bool lowest) {
    SquareMatrix<W> s(a.n());
    s.Add(c[first + 4], a6);
    s.Add(c[first + 2], a4);
    s.Add(c[first], a2);
    if (lowest) s.AddIdentity(c[first - 2]);
    return s;
  };
  // Six products in all: powers up to a^6 and the higher ones by Horner's rule
  // in a^6.
  HR_ASSIGN_OR_RETURN(*odd, Product(a6, sum(9, false)));
  odd->Add(1, sum(3, true));
  HR_ASSIGN_OR_RETURN(*odd, Product(a, *odd));
  HR_ASSIGN_OR_RETURN(*even, Product(a6, sum(8, false)));
  even->Add(1, sum(2, true));
  return OkStatus();
}

template <typename T>
Status Exponential(const T* a, int64_t n, T* out) {
  // Double inside for float too: squaring doubles the error each time.
  using W = std::conditional_t<std::is_same_v<T, Real<T>>, double,
                               std::complex<double>>;
  SquareMatrix<W> x(n);
  std::copy_n(a, n * n, x.begin());
  const double norm = x.Norm();
  // The number of halvings would not be finite either.
  if (!std::isfinite(norm)) {
    std::fill_n(out, n * n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    return OkStatus();
  }
  // exp(a) = exp(a / 2^k)^(2^k), with k so large that the approximation holds.
  const int halvings =
      norm <= kMostNorm
          ? 0
          : static_cast<int>(std::ceil(std::log2(norm / kMostNorm)));
  x.Scale(std::ldexp(1.0, -halvings));
  SquareMatrix<W> odd(n), even(n);
  HR_RETURN_IF_ERROR(Parts(x, &odd, &even));
  // The denominator is the numerator at -a: the odd part changes its sign.
  SquareMatrix<W> above(even), below(even);
  above.Add(1, odd);
  below.Add(-1, odd);
  HR_RETURN_IF_ERROR(Linalg<W>::Solve(below.begin(), n, above.begin(), n,
                                      /*adjoint=*/false, x.begin()));
  for (int i = 0; i < halvings; ++i) {
    HR_ASSIGN_OR_RETURN(x, Product(x, x));
  }
  for (int64_t i = 0; i < n * n; ++i) out[i] = static_cast<T>(x.begin()[i]);
  return OkStatus();
}

struct ExponentialOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& a = c.input(0).shape();
    const int64_t n = FromEnd(a, 1);
    // Some ten products of matrices, and the squarings.
    return ForMatrices(BatchOf(a).num_elements(), 20.0 * n * n * n,
                       [&](int64_t i) {
                         return Exponential<T>(c.in<T>(0) + i * n * n, n,
                                               c.out<T>(0) + i * n * n);
                       });
  }
};

HR_OP(MatrixExponential)
    .Input("input: T")
    .Output("output: T")
    .Attr(kMatrixTypes)
    .Doc("Exponentials of square matrices.")
    .Deprecated(27,
                "Use Python implementation tf.linalg.matrix_exponential "
                "instead.")
    .Shape(SquareShape)
    .Cpu(ComputeFor<PickMatrix<ExponentialOp>>);

}  // namespace
}  // namespace headrace
