// Triangular factors by blocks: a panel by plain loops, the rest of the matrix
// by matrix products.
#include "ops/linalg/decompositions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/cancellation.h"
#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "ops/array/transpose_loops.h"
#include "ops/linalg/eigen_loops.h"
#include "ops/linalg/factor_loops.h"
#include "ops/math/products/gemm.h"
#include "ops/math/products/gemm_loops.h"
#include "tensor/tensor.h"

namespace headrace {

template <>
const EigenLoops<float>& LoopsForEigen() {
  return *AtActiveLevel([](auto level) { return EigenFloat<level>(); });
}
template <>
const EigenLoops<double>& LoopsForEigen() {
  return *AtActiveLevel([](auto level) { return EigenDouble<level>(); });
}
template <>
const EigenLoops<complex64>& LoopsForEigen() {
  return *AtActiveLevel([](auto level) { return EigenComplex64<level>(); });
}
template <>
const EigenLoops<complex128>& LoopsForEigen() {
  return *AtActiveLevel([](auto level) { return EigenComplex128<level>(); });
}
template <>
const FactorLoops<float>& LoopsForFactors() {
  return *AtActiveLevel([](auto level) { return FactorFloat<level>(); });
}
template <>
const FactorLoops<double>& LoopsForFactors() {
  return *AtActiveLevel([](auto level) { return FactorDouble<level>(); });
}

namespace {

// Columns that are worked on before the rest of the matrix follows in one
// product: wider panels spend more time in slow loops, narrower ones make
// products of too little depth.
constexpr int64_t kPanel = 48;

template <typename T>
T Conj(T v) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return v;
  } else {
    return std::conj(v);
  }
}

Status Singular(const char* what) {
  return InvalidArgument(what, " is not invertible.");
}

// A view of a part of a row-major matrix.
template <typename T>
struct Part {
  T* data;
  int64_t row;  // stride
  T& operator()(int64_t i, int64_t j) const { return data[i * row + j]; }
  Part at(int64_t i, int64_t j) const { return {data + i * row + j, row}; }
};

// c -= a b by the sizes of `d`, whose row of c is set here.
template <typename T>
Status SubtractProduct(Part<T> c, const T* a, const T* b, GemmDims d) {
  if (d.m == 0 || d.n == 0 || d.k == 0) return OkStatus();
  // The product goes into a dense buffer first, as Gemm sets its result and
  // does not add to it.
  d.c_row = d.n;
  HR_ASSIGN_OR_RETURN(Tensor room,
                      Tensor::Allocate(DTypeOf<T>, Shape{d.m, d.n}));
  const T* product = room.data<T>();
  HR_RETURN_IF_ERROR(Gemm(DTypeOf<T>, d, a, b, room.raw()));
  ParallelFor(d.m, 0.5 * d.n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = &c(i, 0);
      const T* from = product + i * d.n;
      for (int64_t j = 0; j < d.n; ++j) to[j] -= from[j];
    }
  });
  return OkStatus();
}

// c[m, n] -= a b, depth k.
template <typename T>
Status Subtract(Part<T> c, Part<const T> a, Part<const T> b, int64_t m,
                int64_t n, int64_t k) {
  GemmDims d = GemmDims::Dense(m, n, k, false, false);
  d.a_row = a.row;
  d.b_row = b.row;
  return SubtractProduct<T>(c, a.data, b.data, d);
}
// The same with a turned over: it is [k, m].
template <typename T>
Status SubtractTurned(Part<T> c, Part<const T> a, Part<const T> b, int64_t m,
                      int64_t n, int64_t k) {
  GemmDims d = GemmDims::Dense(m, n, k, true, false);
  d.a_col = a.row;
  d.b_row = b.row;
  return SubtractProduct<T>(c, a.data, b.data, d);
}

// What the rows before row j of a panel that is being factored say of its
// elements from j on, taken from them. Rows that are factored one by one come
// after a product for all of them.
template <typename T>
class RowsBefore {
 public:
  // How far behind its end a panel is read.
  static int64_t Slack() { return LoopsForGemm<T>().width; }

  void Subtract(Part<T> panel, int64_t j, int64_t size, int64_t ld) {
    // Rows come in groups of as many as a tile of the product has: the group's
    // first row takes what all panel rows before say, for the whole group.
    const int64_t first = j / loops_.max_rows * loops_.max_rows;
    if (j == first) {
      SubtractTiles(panel, j, std::min(j + loops_.max_rows, size), ld);
      return;
    }
    sums_.resize(ld);
    const int64_t m = ld - j;
    // A later row of the group still needs the rows of the group before it.
    loops_.row_times_matrix(&panel(first, j), panel.row, &panel(first, j),
                            panel.row, j - first, sums_.data(), m);
    T* row = &panel(j, j);
    for (int64_t i = 0; i < m; ++i) row[i] -= sums_[i];
  }

 private:
  // The same for rows from `begin` to `end`.
  void SubtractTiles(Part<T> panel, int64_t begin, int64_t end, int64_t ld) {
    const int rows = static_cast<int>(end - begin), width = loops_.width;
    sums_.resize(std::max<size_t>(sums_.size(), rows * width));
    for (int64_t j = begin; begin > 0 && j < ld; j += width) {
      const int columns = static_cast<int>(std::min<int64_t>(width, ld - j));
      loops_.tile(&panel(0, begin), 1, panel.row, &panel(0, j), panel.row,
                  sums_.data(), width, rows, columns, begin, false);
      for (int i = 0; i < rows; ++i) {
        T* to = &panel(begin + i, j);
        const T* from = sums_.data() + i * width;
        for (int c = 0; c < columns; ++c) to[c] -= from[c];
      }
    }
  }

  const GemmLoops<T>& loops_ = LoopsForGemm<T>();
  std::vector<T> sums_;
};
template <typename R>
class RowsBefore<std::complex<R>> {
 public:
  static int64_t Slack() { return 0; }

  void Subtract(Part<std::complex<R>> panel, int64_t j, int64_t, int64_t ld) {
    for (int64_t p = 0; p < j; ++p) {
      const std::complex<R> v = std::conj(panel(p, j));
      for (int64_t i = j; i < ld; ++i) panel(j, i) -= panel(p, i) * v;
    }
  }
};

// Factors the first `size` columns of a hermitian matrix, each a row of
// `panel` of which elements from the diagonal on count.
template <typename T>
Status FactorColumns(Part<T> panel, int64_t size, int64_t ld,
                     RowsBefore<T>* before) {
  for (int64_t j = 0; j < size; ++j) {
    before->Subtract(panel, j, size, ld);
    T* row = &panel(j, 0);
    const Real<T> d = std::real(row[j]);
    // Written so that a NaN on the diagonal is refused too.
    if (!(d > 0)) {
      return InvalidArgument(
          "Cholesky decomposition was not successful. The input might not be "
          "valid.");
    }
    const Real<T> root = std::sqrt(d);
    row[j] = T(root);
    for (int64_t i = j + 1; i < ld; ++i) row[i] /= root;
  }
  return OkStatus();
}

// Rows of x from a triangle of t [n, n]: forward or backward substitution.
// `unit`: the diagonal is ones.
template <typename T>
void Substitute(Part<const T> t, int64_t n, Part<T> x, int64_t m, bool forward,
                bool unit) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return LoopsForFactors<T>().substitute(t.data, t.row, n, x.data, x.row, m,
                                           forward, unit);
  }
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = forward ? s : n - 1 - s;
    const int64_t begin = forward ? 0 : i + 1, end = forward ? i : n;
    for (int64_t p = begin; p < end; ++p) {
      const T v = t(i, p);
      T* to = &x(i, 0);
      const T* from = &x(p, 0);
      for (int64_t j = 0; j < m; ++j) to[j] -= v * from[j];
    }
    if (unit) continue;
    const T pivot = t(i, i);
    for (int64_t j = 0; j < m; ++j) x(i, j) /= pivot;
  }
}

// The same by blocks.
template <typename T>
Status SolveBlocks(Part<const T> t, int64_t n, Part<T> x, int64_t m,
                   bool forward, bool unit) {
  const int64_t blocks = (n + kPanel - 1) / kPanel;
  StopMeter meter;
  for (int64_t b = 0; b < blocks; ++b) {
    meter.Add(static_cast<double>(kPanel * m) * (0.3 + 0.02 * n));
    const int64_t i = (forward ? b : blocks - 1 - b) * kPanel;
    const int64_t size = std::min(kPanel, n - i);
    const int64_t from = forward ? 0 : i + size;
    const int64_t depth = forward ? i : n - i - size;
    // Behind the last row there is nothing to point at; the product's depth is
    // 0 then.
    // What the solved rows say of this block, in one product; the triangle on
    // the diagonal is left to the loops.
    HR_RETURN_IF_ERROR(Subtract<T>(
        x.at(i, 0), {&t(i, from < n ? from : 0), t.row},
        {x.data + (from < n ? from : 0) * x.row, x.row}, size, m, depth));
    Substitute<T>({&t(i, i), t.row}, size, x.at(i, 0), m, forward, unit);
  }
  return OkStatus();
}

TransposeLoop TransposeOf(int size) {
  return AtActiveLevel([&](auto level) { return FindTranspose<level>(size); });
}

// Right sides from which on a strip of the matrix is turned over before it is
// multiplied: a product turns it over for itself, with longer ways in memory.
constexpr int64_t kTurnedFrom = 8;

// The same with the matrix turned over. It is read where it lies, strip by
// strip: with few right sides a copy of it would take most of the time.
template <typename T>
Status SolveTurnedBlocks(Part<const T> t, int64_t n, Part<T> x, int64_t m,
                         bool forward) {
  const int64_t blocks = (n + kPanel - 1) / kPanel;
  const TransposeLoop transpose = TransposeOf(sizeof(T));
  std::vector<T> triangle(kPanel * kPanel);
  std::vector<T> strip(m < kTurnedFrom ? 0 : kPanel * n);
  StopMeter meter;
  for (int64_t b = 0; b < blocks; ++b) {
    meter.Add(static_cast<double>(kPanel * m) * (0.3 + 0.02 * n));
    const int64_t i = (forward ? b : blocks - 1 - b) * kPanel;
    const int64_t size = std::min(kPanel, n - i);
    const int64_t depth = forward ? i : n - i - size;
    const int64_t from = forward || depth == 0 ? 0 : i + size;
    const Part<const T> solved{x.data + from * x.row, x.row};
    if (m < kTurnedFrom) {
      HR_RETURN_IF_ERROR(SubtractTurned<T>(x.at(i, 0), {&t(from, i), t.row},
                                           solved, size, m, depth));
    } else if (depth > 0) {
      transpose(&t(from, i), t.row, strip.data(), depth, depth, size);
      HR_RETURN_IF_ERROR(Subtract<T>(x.at(i, 0), {strip.data(), depth}, solved,
                                     size, m, depth));
    }
    transpose(&t(i, i), t.row, triangle.data(), size, size, size);
    Substitute<T>({triangle.data(), size}, size, x.at(i, 0), m, forward, false);
  }
  return OkStatus();
}

template <typename T>
std::vector<T> AdjointOf(const T* a, int64_t n) {
  std::vector<T> out(n * n);
  const TransposeLoop transpose = TransposeOf(sizeof(T));
  // By squares: what is written lies a row apart, which a cache holds for some
  // rows at a time.
  for (int64_t i = 0; i < n; i += kPanel) {
    for (int64_t j = 0; j < n; j += kPanel) {
      transpose(a + i * n + j, n, out.data() + j * n + i, n,
                std::min(kPanel, n - i), std::min(kPanel, n - j));
    }
  }
  if constexpr (!std::is_same_v<T, Real<T>>) {
    for (T& v : out) v = Conj(v);
  }
  return out;
}

// Factors a panel [rows, size] in place with partial pivoting: row j was
// swapped with row pivots[j] of it.
template <typename T>
void FactorPanel(Part<T> a, int64_t rows, int64_t size, int64_t* pivots) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return LoopsForFactors<T>().panel(a.data, a.row, rows, size, pivots);
  }
  for (int64_t j = 0; j < std::min(size, rows); ++j) {
    int64_t best = j;
    // The largest element as the pivot keeps the factors of l at most 1 in
    // size.
    for (int64_t i = j + 1; i < rows; ++i) {
      if (std::abs(a(i, j)) > std::abs(a(best, j))) best = i;
    }
    pivots[j] = best;
    if (best != j) std::swap_ranges(&a(j, 0), &a(j, 0) + size, &a(best, 0));
    const T pivot = a(j, j);
    // A column of zeros needs no elimination. Whoever needs an inverse checks
    // the pivots afterwards.
    if (pivot == T(0)) continue;
    for (int64_t i = j + 1; i < rows; ++i) {
      const T v = a(i, j) /= pivot;
      for (int64_t k = j + 1; k < size; ++k) a(i, k) -= v * a(j, k);
    }
  }
}

// a = p l u in place; p[i] is the row of a that became row i. `odd` tells
// whether the permutation is.
template <typename T>
Status FactorLu(T* data, int64_t n, int64_t* p, bool* odd) {
  const Part<T> a{data, n};
  std::iota(p, p + n, int64_t{0});
  *odd = false;
  int64_t pivots[kPanel];
  StopMeter meter;
  for (int64_t k = 0; k < n; k += kPanel) {
    meter.Add(static_cast<double>(kPanel * (n - k)) * (0.3 + 0.02 * (n - k)));
    const int64_t size = std::min(kPanel, n - k), rest = n - k - size;
    FactorPanel<T>(a.at(k, k), n - k, size, pivots);
    for (int64_t i = 0; i < size; ++i) {
      if (pivots[i] == i) continue;
      T *one = &a(k + i, 0), *other = &a(k + pivots[i], 0);
      // The panel swapped its own columns already; the columns left and right
      // of it follow.
      std::swap_ranges(one, one + k, other);
      std::swap_ranges(one + k + size, one + n, other + k + size);
      std::swap(p[k + i], p[k + pivots[i]]);
      *odd = !*odd;
    }
    if (rest == 0) break;
    // The rows of u right of the panel: l11^-1 a12.
    Substitute<T>({&a(k, k), n}, size, a.at(k, k + size), rest, true, true);
    // The rest of the matrix becomes a22 - l21 u12.
    HR_RETURN_IF_ERROR(Subtract<T>(a.at(k + size, k + size),
                                   {&a(k + size, k), n}, {&a(k, k + size), n},
                                   rest, rest, size));
  }
  return OkStatus();
}

template <typename T>
bool HasZeroPivot(const T* lu, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    // Written so that a NaN counts as a zero pivot.
    if (!(std::abs(lu[i * n + i]) > Real<T>(0))) return true;
  }
  return false;
}

}  // namespace

template <typename T>
Status Linalg<T>::Solve(const T* a, int64_t n, const T* b, int64_t m,
                        bool adjoint, T* x) {
  if (n == 0 || m == 0) return OkStatus();
  // Complex matrices are solved by Eigen's code: the panels and substitutions
  // of this file are fast for real numbers alone.
  if constexpr (!std::is_same_v<T, Real<T>>) {
    if (LoopsForEigen<T>().solve(a, n, b, m, adjoint, x)) return OkStatus();
    return Singular("Input matrix");
  }
  std::vector<T> lu = adjoint ? AdjointOf(a, n) : std::vector<T>(a, a + n * n);
  std::vector<int64_t> p(n);
  bool odd;
  HR_RETURN_IF_ERROR(FactorLu(lu.data(), n, p.data(), &odd));
  if (HasZeroPivot(lu.data(), n)) return Singular("Input matrix");
  // a = p l u, so l u x = p^-1 b.
  for (int64_t i = 0; i < n; ++i) std::copy_n(b + p[i] * m, m, x + i * m);
  HR_RETURN_IF_ERROR(SolveBlocks<T>({lu.data(), n}, n, {x, m}, m, true, true));
  return SolveBlocks<T>({lu.data(), n}, n, {x, m}, m, false, false);
}

template <typename T>
Status Linalg<T>::Invert(const T* a, int64_t n, bool adjoint, T* out) {
  std::vector<T> eye(n * n, T(0));
  for (int64_t i = 0; i < n; ++i) eye[i * n + i] = T(1);
  Status s = Solve(a, n, eye.data(), n, adjoint, out);
  // Upstream has another word for the matrix here.
  return absl::IsInvalidArgument(s) ? Singular("Input") : s;
}

template <typename T>
Status Linalg<T>::SolveTriangular(const T* a, int64_t n, const T* b, int64_t m,
                                  bool lower, bool adjoint, T* x) {
  if (n == 0 || m == 0) return OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    if (a[i * n + i] == T(0)) return Singular("Input matrix");
  }
  // The right side may be solved in its own place.
  if (x != b) std::copy_n(b, n * m, x);
  if constexpr (std::is_same_v<T, Real<T>>) {
    if (adjoint) return SolveTurnedBlocks<T>({a, n}, n, {x, m}, m, !lower);
  }
  std::vector<T> turned;
  if (adjoint) turned = AdjointOf(a, n);
  return SolveBlocks<T>({adjoint ? turned.data() : a, n}, n, {x, m}, m,
                        lower != adjoint, false);
}

template <typename T>
Status Linalg<T>::Cholesky(const T* a, int64_t n, T* l) {
  const Part<T> out{l, n};
  for (int64_t i = 0; i < n; ++i) {
    // Only the lower triangle is read, as upstream reads it.
    std::copy_n(a + i * n, i + 1, l + i * n);
    std::fill(l + i * n + i + 1, l + (i + 1) * n, T(0));
  }
  std::vector<T> columns(kPanel * n + RowsBefore<T>::Slack()), conjugated;
  RowsBefore<T> before;
  const TransposeLoop transpose = TransposeOf(sizeof(T));
  StopMeter meter;
  for (int64_t k = 0; k < n; k += kPanel) {
    const int64_t size = std::min(kPanel, n - k), ld = n - k;
    meter.Add(static_cast<double>(kPanel * ld) * (0.3 + 0.02 * ld));
    // The panel turned over: a column of L lies in memory.
    const Part<T> panel{columns.data(), ld};
    transpose(&out(k, k), n, panel.data, ld, ld, size);
    HR_RETURN_IF_ERROR(FactorColumns(panel, size, ld, &before));
    transpose(panel.data, ld, &out(k, k), n, size, ld);
    // The rest, row block by row block, as only its lower triangle is there.
    Part<const T> right{panel.data, ld};
    if constexpr (!std::is_same_v<T, Real<T>>) {
      conjugated.resize(size * ld);
      for (int64_t i = 0; i < size * ld; ++i) {
        conjugated[i] = Conj(panel.data[i]);
      }
      right.data = conjugated.data();
    }
    // A band's product reaches to the end of its last row: rows above the
    // diagonal within a band are computed for nothing, so bands are kept low.
    const int64_t next = k + size, band = 4 * kPanel;
    for (int64_t i = size; i < ld; i += band) {
      const int64_t rows = std::min(band, ld - i);
      HR_RETURN_IF_ERROR(SubtractTurned<T>(
          out.at(k + i, next), {&panel(0, i), ld}, {right.data + size, ld},
          rows, i - size + rows, size));
    }
  }
  // The bands wrote above the diagonal, too.
  for (int64_t i = 0; i < n; ++i) {
    std::fill(l + i * n + i + 1, l + (i + 1) * n, T(0));
  }
  return OkStatus();
}

template <typename T>
Status Linalg<T>::LogDeterminant(const T* a, int64_t n, T* sign, T* log_abs) {
  std::vector<T> lu(a, a + n * n);
  std::vector<int64_t> p(n);
  bool odd = false;
  HR_RETURN_IF_ERROR(FactorLu(lu.data(), n, p.data(), &odd));
  T unit(odd ? -1 : 1);
  Real<T> sum(0);
  for (int64_t i = 0; i < n; ++i) {
    const T pivot = lu[i * n + i];
    // Logarithms are summed, as the product of the pivots may overflow.
    const Real<T> size = std::abs(pivot);
    // A singular matrix has sign 0 and log|det| -inf, as upstream's.
    unit = size == 0 ? T(0) : T(unit * (pivot / size));
    sum += std::log(size);
  }
  *sign = unit;
  *log_abs = T(sum);
  return OkStatus();
}

template <typename T>
Status Linalg<T>::Lu(const T* a, int64_t n, T* lu, int64_t* p) {
  std::copy_n(a, n * n, lu);
  bool odd;
  HR_RETURN_IF_ERROR(FactorLu(lu, n, p, &odd));
  if (HasZeroPivot(lu, n)) return Singular("Input");
  return OkStatus();
}

template <typename T>
void Linalg<T>::Qr(const T* a, int64_t m, int64_t n, bool full, T* q, T* r) {
  if (m > 0 && n > 0) return LoopsForEigen<T>().qr(a, m, n, full, q, r);
  const int64_t columns = full ? m : 0;
  for (int64_t i = 0; i < m * columns; ++i) {
    // The factor of an empty matrix is the identity.
    q[i] = T(i % (columns + 1) == 0 ? 1 : 0);
  }
}

namespace {

// out[m, n] = a^H b for a[k, m], b[k, n] (`left`), or a b^H for a[m, k],
// b[n, k].
template <typename T>
Status AdjointProduct(const T* a, const T* b, bool left, int64_t m, int64_t n,
                      int64_t k, T* out) {
  const GemmDims d = GemmDims::Dense(m, n, k, left, !left);
  if constexpr (std::is_same_v<T, Real<T>>) {
    return Gemm(DTypeOf<T>, d, a, b, out);
  }
  // Gemm can transpose but not conjugate.
  std::vector<T> conj(left ? a : b, left ? a + m * k : b + n * k);
  for (T& v : conj) v = Conj(v);
  return Gemm(DTypeOf<T>, d, left ? conj.data() : a, left ? b : conj.data(),
              out);
}

}  // namespace

template <typename T>
Status Linalg<T>::LeastSquares(const T* a, int64_t m, int64_t n, const T* b,
                               int64_t k, double penalty, bool fast, T* x) {
  std::fill_n(x, n * k, T(0));
  if (m == 0 || n == 0 || k == 0) return OkStatus();
  // The slow way, by a complete orthogonal decomposition, which also serves
  // matrices without full rank; it takes no penalty, as upstream's.
  if (!fast) {
    LoopsForEigen<T>().least_squares(a, m, n, b, k, x);
    return OkStatus();
  }
  // The normal equations: (a^H a + penalty) x = a^H b for tall matrices, x =
  // a^H (a a^H + penalty)^-1 b for wide ones; the Gram matrix is the smaller of
  // both.
  const bool tall = m >= n;
  const int64_t size = std::min(m, n);
  std::vector<T> gram(size * size), l(size * size), y(size * k);
  HR_RETURN_IF_ERROR(
      AdjointProduct(a, a, tall, size, size, std::max(m, n), gram.data()));
  for (int64_t i = 0; i < size; ++i) gram[i * size + i] += T(penalty);
  if (!Cholesky(gram.data(), size, l.data()).ok()) {
    return InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting "
        "fast=False or provide a larger l2_regularizer > 0.");
  }
  if (tall) {
    HR_RETURN_IF_ERROR(AdjointProduct(a, b, true, n, k, m, y.data()));
  } else {
    std::copy_n(b, size * k, y.data());
  }
  T* to = y.data();
  // l l^H y = right side: one solve with each.
  HR_RETURN_IF_ERROR(SolveTriangular(l.data(), size, to, k, true, false, to));
  HR_RETURN_IF_ERROR(SolveTriangular(l.data(), size, to, k, true, true, to));
  if (tall) {
    std::copy_n(to, n * k, x);
  } else {
    HR_RETURN_IF_ERROR(AdjointProduct(a, to, true, n, k, m, x));
  }
  return OkStatus();
}

template struct Linalg<float>;
template struct Linalg<double>;
template struct Linalg<complex64>;
template struct Linalg<complex128>;

}  // namespace headrace
