// Householder reflections make the matrix bidiagonal; implicit QR steps
// (Golub and Kahan's) make that diagonal. Vectors are kept as rows, so that
// reflections and rotations walk memory in order; rotations are gathered and
// applied strip by strip of columns.
#include "ops/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/cancellation.h"
#include "base/cpu_level.h"
#include "base/thread_pool.h"
#include "ops/linalg/svd_loops.h"
#include "tensor/tensor.h"

namespace headrace {

template <>
const SvdLoops<float>& LoopsForSvd() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return FloatSvd<level>(); });
  return *loops;
}
template <>
const SvdLoops<double>& LoopsForSvd() {
  static const auto* loops =
      AtActiveLevel([](auto level) { return DoubleSvd<level>(); });
  return *loops;
}

namespace {

// Rows of a multiple of a block each, zeroed.
template <typename T>
struct Rows {
  Tensor room;
  T* data = nullptr;
  int64_t stride = 0;
  T* operator[](int64_t i) const { return data + i * stride; }

  Status Make(int64_t rows, int64_t cols) {
    constexpr int64_t kBlock = SvdLoops<T>::kBlock;
    // Whole vectors in every row, so that the loops need no tail; what fills a
    // row up is zero and stays zero.
    stride = (cols + kBlock - 1) / kBlock * kBlock;
    HR_ASSIGN_OR_RETURN(room,
                        Tensor::Allocate(DTypeOf<T>, Shape{rows, stride}));
    data = room.data<T>();
    std::fill_n(data, rows * stride, T(0));
    return OkStatus();
  }
};

// Makes x (from `at` on, zero elsewhere) the vector of a reflection that turns
// it into beta times its first unit vector; returns its factor.
template <typename T>
T MakeReflection(T* x, int64_t at, int64_t stride, T* beta) {
  const T alpha = x[at];
  x[at] = 0;
  const T rest = LoopsForSvd<T>().square(x, stride);
  x[at] = 1;
  *beta = alpha;
  // Nothing to turn: a factor of 0 makes the reflection the identity.
  if (rest == T(0)) return 0;
  // The sign that makes alpha - beta a sum, without cancellation.
  *beta = -std::copysign(std::sqrt(alpha * alpha + rest), alpha);
  const T scale = 1 / (alpha - *beta);
  for (int64_t i = at + 1; i < stride; ++i) x[i] *= scale;
  // LAPACK's normalization: v begins with 1 and H = I - tau v v^T.
  return (*beta - alpha) / *beta;
}

// a[m, n], m >= n, as Q B P^T: row k of `left` and `right` is the k-th
// reflection of Q and of P.
template <typename T>
class Bidiagonal {
 public:
  Status Make(const T* a, bool turned, int64_t m, int64_t n, T scale) {
    m_ = m;
    n_ = n;
    HR_RETURN_IF_ERROR(a_.Make(m, n));
    HR_RETURN_IF_ERROR(left.Make(n, m));
    HR_RETURN_IF_ERROR(right.Make(n, n));
    HR_RETURN_IF_ERROR(sums_.Make(1, n));
    left_factors.resize(n);
    right_factors.resize(n);
    d.resize(n);
    e.assign(n, 0.0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        a_[i][j] = (turned ? a[j * m + i] : a[i * n + j]) * scale;
      }
    }
    StopMeter meter;
    for (int64_t k = 0; k < n; ++k) {
      meter.Add(0.5 * static_cast<double>((m - k) * (n - k)));
      Step(k);
    }
    return OkStatus();
  }

  Rows<T> left, right;
  std::vector<T> left_factors, right_factors;
  std::vector<double> d, e;  // e[k] is right of d[k]

 private:
  void Step(int64_t k) {
    const auto& loops = LoopsForSvd<T>();
    T* v = left[k];
    for (int64_t i = k; i < m_; ++i) v[i] = a_[i][k];
    T beta;
    const T tau = left_factors[k] = MakeReflection(v, k, left.stride, &beta);
    d[k] = beta;
    if (k + 1 == n_) return;
    // From the block that column k + 1 lies in.
    const int64_t from = (k + 1) / kBlock * kBlock, size = a_.stride - from;
    T* w = sums_.data + from;
    loops.rows_by(v + k, a_[k] + from, a_.stride, m_ - k, w, size);
    // Columns up to k are done and must not change.
    for (int64_t j = from; j <= k; ++j) w[j - from] = 0;
    T* u = right[k];
    // Row k after the left reflection; the other rows get both reflections in
    // one pass below, which reads the matrix once instead of twice.
    for (int64_t j = k + 1; j < n_; ++j) u[j] = a_[k][j] - tau * w[j - from];
    const T t = right_factors[k] =
        MakeReflection(u, k + 1, right.stride, &beta);
    e[k] = beta;
    for (int64_t i = k + 1; i < m_; ++i) {
      loops.update(a_[i] + from, tau * v[i], w, t, u + from, size);
    }
  }

  static constexpr int64_t kBlock = SvdLoops<T>::kBlock;
  int64_t m_ = 0, n_ = 0;
  Rows<T> a_, sums_;
};

// The first `rows` columns of the product of reflections, as rows; reflection
// k begins at element k + shift.
template <typename T>
Status FormVectors(const Rows<T>& reflections, const std::vector<T>& factors,
                   int64_t shift, int64_t rows, int64_t size, Rows<T>* out) {
  HR_RETURN_IF_ERROR(out->Make(rows, size));
  const int64_t count = factors.size();
  constexpr int64_t kBlock = SvdLoops<T>::kBlock, kBand = 8;
  const int64_t bands = (rows + kBand - 1) / kBand;
  const double cost = 1.0 * kBand * std::min(count, rows) * size * 0.1;
  ParallelFor(bands, cost, [&](int64_t begin, int64_t end) {
    // Bands of rows are apart from one another, so threads share them.
    for (int64_t i = begin * kBand; i < std::min(rows, end * kBand);
         i += kBand) {
      const int64_t last = std::min(rows, i + kBand);
      for (int64_t r = i; r < last; ++r) (*out)[r][r] = 1;
      // Later ones do not touch these rows yet.
      for (int64_t k = std::min(count - 1, last - 1); k >= 0; --k) {
        if (factors[k] == T(0)) continue;
        const int64_t from = std::min(k + shift, size - 1) / kBlock * kBlock;
        LoopsForSvd<T>().reflect((*out)[i] + from, out->stride, last - i,
                                 factors[k], reflections[k] + from,
                                 out->stride - from);
      }
    }
  });
  return OkStatus();
}

// Rotations of the rows of one matrix, gathered.
template <typename T>
class Rotations {
 public:
  explicit Rotations(const Rows<T>* rows) : rows_(rows) {}
  void Add(int64_t p, int64_t q, double c, double s) {
    if (rows_ == nullptr) return;
    list_.push_back({p, q, c, s});
    // So many that the cost of going to the threads is small; the list still
    // fits the second cache.
    if (list_.size() >= 8192) Apply();
  }
  void Apply() {
    if (rows_ == nullptr || list_.empty()) return;
    // A strip of columns stays in the cache while all rotations of the list go
    // over it.
    constexpr int64_t kStrip = 4 * SvdLoops<T>::kBlock;
    const int64_t strips = (rows_->stride + kStrip - 1) / kStrip;
    ParallelFor(strips, 5.0 * list_.size(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        LoopsForSvd<T>().rotate(rows_->data + i * kStrip, rows_->stride,
                                list_.data(), list_.size(),
                                std::min(kStrip, rows_->stride - i * kStrip));
      }
    });
    list_.clear();
  }

 private:
  const Rows<T>* const rows_;
  std::vector<PlaneRotation> list_;
};

// Makes the bidiagonal matrix (d, e) diagonal.
template <typename T>
class Diagonalize {
 public:
  Diagonalize(std::vector<double>& d, std::vector<double>& e,
              Rotations<T>& left, Rotations<T>& right)
      : d_(d), e_(e), left_(left), right_(right) {}

  // False when it does not converge.
  bool Run() {
    int64_t hi = static_cast<int64_t>(d_.size()) - 1;
    StopMeter meter;
    // Two or three steps for each value are usual; sixty mean that it does not
    // converge.
    for (int64_t left = 60 * (hi + 1); hi > 0; --left) {
      if (left < 0) return false;
      meter.Add(20.0 * static_cast<double>(hi));
      int64_t lo = hi;
      // The matrix falls apart where an element beside the diagonal vanishes;
      // its last part is worked on.
      while (lo > 0 && !Negligible(lo - 1)) --lo;
      if (lo == hi) {
        --hi;
        continue;
      }
      // A zero on the diagonal has to be taken out first: with one the QR step
      // does not converge.
      const int64_t zero = ZeroIn(lo, hi);
      if (zero == hi) {
        ClearColumn(lo, hi);
      } else if (zero >= 0) {
        ClearRow(zero, hi);
      } else {
        Step(lo, hi);
      }
    }
    return true;
  }

 private:
  static constexpr double kEpsilon = std::numeric_limits<T>::epsilon() / 2;
  // Far below any entry that counts, and above denormals, so that blocks of
  // zeros end as well.
  static constexpr double kTiny = 1e-290;

  bool Negligible(int64_t i) {
    if (std::abs(e_[i]) >
        kTiny + kEpsilon * (std::abs(d_[i]) + std::abs(d_[i + 1]))) {
      return false;
    }
    e_[i] = 0;
    return true;
  }
  // The last diagonal element that is nothing beside its neighbours, made 0.
  int64_t ZeroIn(int64_t lo, int64_t hi) {
    for (int64_t i = hi; i >= lo; --i) {
      const double beside =
          (i < hi ? std::abs(e_[i]) : 0) + (i > lo ? std::abs(e_[i - 1]) : 0);
      if (std::abs(d_[i]) > kTiny + kEpsilon * beside) continue;
      d_[i] = 0;
      return i;
    }
    return -1;
  }
  // c and s that turn (f, g) into (the result, 0).
  static double Turn(double f, double g, double* c, double* s) {
    // The matrix was scaled to about one, so the squares cannot overflow.
    const double r = std::sqrt(f * f + g * g);
    *c = r == 0 ? 1 : f / r;
    *s = r == 0 ? 0 : g / r;
    return r;
  }
  // d[hi] is 0: moves e[hi - 1] out over the column.
  void ClearColumn(int64_t lo, int64_t hi) {
    double f = e_[hi - 1], c, s;
    e_[hi - 1] = 0;
    for (int64_t j = hi - 1; j >= lo; --j) {
      d_[j] = Turn(d_[j], f, &c, &s);
      if (j > lo) {
        f = -s * e_[j - 1];
        e_[j - 1] *= c;
      }
      right_.Add(j, hi, c, s);
    }
  }
  // d[at] is 0: moves e[at] out along the row.
  void ClearRow(int64_t at, int64_t hi) {
    double f = e_[at], c, s;
    e_[at] = 0;
    for (int64_t j = at + 1; j <= hi; ++j) {
      d_[j] = Turn(d_[j], f, &c, &s);
      if (j < hi) {
        f = -s * e_[j];
        e_[j] *= c;
      }
      left_.Add(j, at, c, s);
    }
  }
  // One implicit QR step on rows lo .. hi.
  void Step(int64_t lo, int64_t hi) {
    const double scale =
        std::max({std::abs(d_[hi]), std::abs(d_[hi - 1]), std::abs(e_[hi - 1]),
                  std::abs(d_[lo]), std::abs(e_[lo])});
    const double last = d_[hi] / scale, before = d_[hi - 1] / scale;
    const double beside = e_[hi - 1] / scale, first = d_[lo] / scale;
    // Wilkinson's shift: the eigenvalue of the last two rows of B^T B that is
    // nearer to the last element.
    const double b = ((before + last) * (before - last) + beside * beside) / 2;
    const double k = last * beside * (last * beside);
    double shift = 0;
    if (b != 0 || k != 0) {
      // The sign that avoids cancellation.
      shift = k / (b + std::copysign(std::sqrt(b * b + k), b));
    }
    // The first column of B^T B - shift, divided by d[lo]: (first - last)(first
    // + last) does without squares that cancel.
    double f = (first + last) * (first - last) + shift;
    double g = first * (e_[lo] / scale);
    double c, s;
    for (int64_t i = lo; i < hi; ++i) {
      // Each rotation from the right makes an element below the diagonal, each
      // one from the left moves it one place on: the bulge is chased down.
      double r = Turn(f, g, &c, &s);
      if (i > lo) e_[i - 1] = r;
      f = c * d_[i] + s * e_[i];
      e_[i] = c * e_[i] - s * d_[i];
      g = s * d_[i + 1];
      d_[i + 1] *= c;
      right_.Add(i, i + 1, c, s);
      d_[i] = Turn(f, g, &c, &s);
      f = c * e_[i] + s * d_[i + 1];
      d_[i + 1] = c * d_[i + 1] - s * e_[i];
      if (i + 1 < hi) {
        g = s * e_[i + 1];
        e_[i + 1] *= c;
      }
      left_.Add(i, i + 1, c, s);
    }
    e_[hi - 1] = f;
  }

  std::vector<double>& d_;
  std::vector<double>& e_;
  Rotations<T>& left_;
  Rotations<T>& right_;
};

// Rows of `from` in the order of `order` (then the rest) as columns of
// to[size, rows]; those whose sign is negative turned.
template <typename T>
void WriteColumns(const Rows<T>& from, const std::vector<int64_t>& order,
                  const std::vector<double>* signs, int64_t size, int64_t rows,
                  T* to) {
  const int64_t k = order.size();
  ParallelFor(size, 1.0 * rows, [&](int64_t begin, int64_t end) {
    for (int64_t j = 0; j < rows; ++j) {
      const int64_t r = j < k ? order[j] : j;
      const T* row = from[r];
      // Singular values are not negative: their sign goes to the right vectors.
      const T sign = signs && j < k && (*signs)[r] < 0 ? T(-1) : T(1);
      for (int64_t i = begin; i < end; ++i) to[i * rows + j] = sign * row[i];
    }
  });
}

template <typename T>
void Identity(int64_t rows, int64_t cols, T* to) {
  std::fill_n(to, rows * cols, T(0));
  for (int64_t i = 0; i < std::min(rows, cols); ++i) to[i * cols + i] = 1;
}

// The same for m >= n; `turned`: a is [n, m].
template <typename T>
Status RealSvdOf(const T* a, bool turned, int64_t m, int64_t n, bool full, T* s,
                 T* u, T* v) {
  const int64_t columns = full ? m : n;
  if (n == 0) {
    if (u) Identity(m, columns, u);
    return OkStatus();
  }
  T largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < m * n; ++i) {
    finite &= std::isfinite(a[i]);
    largest = std::max(largest, std::abs(a[i]));
  }
  if (!finite) {
    std::fill_n(s, n, T(NAN));
    if (u) std::fill_n(u, m * columns, T(NAN));
    if (v) std::fill_n(v, n * n, T(NAN));
    return OkStatus();
  }
  // A power of two near 1 / largest: squares neither overflow nor vanish.
  int power = 0;
  std::frexp(largest, &power);
  // Kept where 2^power and 2^-power are both normal numbers.
  power = std::clamp(power, std::numeric_limits<T>::min_exponent + 2,
                     std::numeric_limits<T>::max_exponent - 2);
  Bidiagonal<T> b;
  HR_RETURN_IF_ERROR(b.Make(a, turned, m, n, std::ldexp(T(1), -power)));
  Rows<T> left, right;
  if (u) {
    HR_RETURN_IF_ERROR(
        FormVectors(b.left, b.left_factors, 0, columns, m, &left));
    HR_RETURN_IF_ERROR(FormVectors(b.right, b.right_factors, 1, n, n, &right));
  }
  Rotations<T> left_rotations(u ? &left : nullptr);
  Rotations<T> right_rotations(u ? &right : nullptr);
  if (!Diagonalize<T>(b.d, b.e, left_rotations, right_rotations).Run()) {
    return InvalidArgument(
        "SVD decomposition was not successful. The input might not be valid.");
  }
  left_rotations.Apply();
  right_rotations.Apply();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return std::abs(b.d[i]) > std::abs(b.d[j]);
  });
  for (int64_t i = 0; i < n; ++i) {
    s[i] = static_cast<T>(std::ldexp(std::abs(b.d[order[i]]), power));
  }
  if (u) {
    WriteColumns<T>(left, order, nullptr, m, columns, u);
    WriteColumns<T>(right, order, &b.d, n, n, v);
  }
  return OkStatus();
}

}  // namespace

template <typename T>
Status RealSvd(const T* a, int64_t m, int64_t n, bool full, T* s, T* u, T* v) {
  // A wide matrix is turned over.
  if (m < n) return RealSvdOf(a, true, n, m, full, s, v, u);
  return RealSvdOf(a, false, m, n, full, s, u, v);
}

template Status RealSvd(const float*, int64_t, int64_t, bool, float*, float*,
                        float*);
template Status RealSvd(const double*, int64_t, int64_t, bool, double*, double*,
                        double*);

}  // namespace headrace
