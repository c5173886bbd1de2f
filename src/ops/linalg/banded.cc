// TridiagonalSolve, TridiagonalMatMul, BandedTriangularSolve.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op/vectorize.h"
#include "ops/linalg/matrix_op.h"

namespace headrace {
namespace {

constexpr char kBandedTypes[] = "T: {double, float, complex64, complex128}";

// Rows of diagonals: above (its last element unused), main, below (its first
// unused).
Status TridiagonalShape(ShapeContext& c) {
  const Shape &d = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(d, 2));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  const int64_t three = FromEnd(d, 2), n = FromEnd(d, 1);
  if (three >= 0 && three != 3) {
    return InvalidArgument("Expected diagonals to have 3 rows, got ", three);
  }
  if (n >= 0 && FromEnd(b, 2) >= 0 && n != FromEnd(b, 2)) {
    return InvalidArgument(
        "The length of diagonals and the rows of rhs must agree, got ", n,
        " and ", FromEnd(b, 2));
  }
  HR_ASSIGN_OR_RETURN(Shape batch, MergeShapes(BatchOf(d), BatchOf(b)));
  c.set_output(0, WithMatrix(batch, n >= 0 ? n : FromEnd(b, 2), FromEnd(b, 1)));
  return OkStatus();
}

// Gaussian elimination, with rows swapped for the larger pivot when `pivot`.
template <typename T>
Status SolveTridiagonal(const T* d, int64_t n, const T* b, int64_t m,
                        bool pivot, bool perturb, T* x) {
  if (n == 0) return OkStatus();
  const T *up = d, *down = d + 2 * n;
  // A swap of rows brings in an element two places right of the main diagonal,
  // which no other step makes.
  std::vector<T> main(d + n, d + 2 * n), next(n), second(n, T(0));
  for (int64_t i = 0; i < n; ++i) next[i] = i + 1 < n ? up[i] : T(0);
  // The right sides are worked on in place of the solution.
  std::copy(b, b + n * m, x);
  auto zero_pivot = [&](T& p) -> Status {
    if (p != T(0)) return OkStatus();
    // Upstream's perturb_singular: an epsilon in place of a zero pivot gives
    // some solution.
    if (perturb) {
      p = T(std::numeric_limits<Real<T>>::epsilon());
      return OkStatus();
    }
    return InvalidArgument(pivot ? "The matrix is not invertible."
                                 : "The first element of diagonals is zero or "
                                   "a pivot vanished; set partial_pivoting.");
  };
  for (int64_t i = 0; i + 1 < n; ++i) {
    T below = down[i + 1];
    if (pivot && std::abs(below) > std::abs(main[i])) {
      std::swap(main[i], below);
      std::swap(next[i], main[i + 1]);
      std::swap(second[i], next[i + 1]);
      // The right sides follow their rows.
      std::swap_ranges(x + i * m, x + (i + 1) * m, x + (i + 1) * m);
    }
    HR_RETURN_IF_ERROR(zero_pivot(main[i]));
    const T factor = below / main[i];
    main[i + 1] -= factor * next[i];
    next[i + 1] -= factor * second[i];
    for (int64_t j = 0; j < m; ++j) x[(i + 1) * m + j] -= factor * x[i * m + j];
  }
  HR_RETURN_IF_ERROR(zero_pivot(main[n - 1]));
  for (int64_t i = n; i-- > 0;) {
    for (int64_t j = 0; j < m; ++j) {
      T v = x[i * m + j];
      if (i + 1 < n) v -= next[i] * x[(i + 1) * m + j];
      if (i + 2 < n) v -= second[i] * x[(i + 2) * m + j];
      x[i * m + j] = v / main[i];
    }
  }
  return OkStatus();
}

struct TridiagonalSolveOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& b = c.input(1).shape();
    const int64_t n = FromEnd(b, 2), m = FromEnd(b, 1);
    const bool pivot = c.op().bool_attr("partial_pivoting");
    const bool perturb = c.op().bool_attr("perturb_singular");
    if (perturb && !pivot) {
      return InvalidArgument("Setting perturb_singular requires pivoting.");
    }
    return ForMatrices(BatchOf(b).num_elements(), 10.0 * n * m, [&](int64_t i) {
      return SolveTridiagonal(c.in<T>(0) + i * 3 * n, n, c.in<T>(1) + i * n * m,
                              m, pivot, perturb, c.out<T>(0) + i * n * m);
    });
  }
};

// Entries [begin, end) of the axis counted from the end (1 or 2); an end of 0
// is that of the axis. No rank needs to be known.
Value Along(OpScope& s, const Value& v, int axis, int begin, int end) {
  // The first entry stands for the ellipsis, whatever the rank.
  std::vector<int32_t> from(axis + 1, 0), to(axis + 1, 0);
  from[1] = begin;
  to[1] = end;
  const int64_t rest = axis == 2 ? 4 : 0;  // the columns, all of them
  return s("StridedSlice",
           {v, s.Int32s(from), s.Int32s(to),
            s.Int32s(std::vector<int32_t>(axis + 1, 1))},
           {{"ellipsis_mask", int64_t{1}},
            {"begin_mask", rest},
            {"end_mask", rest | (end == 0 ? 2 : 0)}});
}

// v moved by one along the axis counted from the end; a zero comes in.
Value Moved(OpScope& s, const Value& v, int axis, bool forwards) {
  // Made of the entries themselves, so that their sizes need not be known.
  Value zero = s("ZerosLike", {Along(s, v, axis, 0, 1)});
  Value kept = Along(s, v, axis, forwards ? 0 : 1, forwards ? -1 : 0);
  return s("ConcatV2",
           {forwards ? zero : kept, forwards ? kept : zero, s.Int32(-axis)});
}

// The sum over columns of a * conj(b).
Value Diagonal(OpScope& s, const Value& a, const Value& b) {
  Value other = IsComplex(b.dtype()) ? s("Conj", {b}) : b;
  return s("Sum", {s("Mul", {a, other}), s.Int32s({-1})});
}
// That of a row and the next, or the one before, of b.
Value Above(OpScope& s, const Value& a, const Value& b) {
  return Diagonal(s, a, Moved(s, b, 2, false));
}
Value Below(OpScope& s, const Value& a, const Value& b) {
  return Diagonal(s, a, Moved(s, b, 2, true));
}

// [above, main, below] diagonals of a b^H, as rows.
Value ThreeDiagonals(OpScope& s, const Value& a, const Value& b) {
  return s("Pack", {Above(s, a, b), Diagonal(s, a, b), Below(s, a, b)},
           {{"N", 3}, {"axis", -2}});
}

// The diagonals [above, main, below] of the adjoint.
Value AdjointDiagonals(OpScope& s, const Value& d) {
  // The adjoint's upper diagonal is the lower one, one place to the left, and
  // the other way round: diagonals are kept by rows.
  Value above = Moved(s, Along(s, d, 2, 2, 0), 1, false);
  Value below = Moved(s, Along(s, d, 2, 0, 1), 1, true);
  Value all = s("ConcatV2", {above, Along(s, d, 2, 1, 2), below, s.Int32(-2)},
                {{"N", 3}});
  return IsComplex(d.dtype()) ? s("Conj", {all}) : all;
}

Status TridiagonalSolveGradient(GradientContext& g) {
  Value d = g.grad(), x = g.output(0);
  if (!d) return g.status();
  AttrMap attrs{{"partial_pivoting", g.op().bool_attr("partial_pivoting")},
                {"perturb_singular", g.op().bool_attr("perturb_singular")}};
  // x = a^-1 b: the gradient for b is a^-H d, and that for a is -db x^H, of
  // which only the three diagonals are parameters.
  Value db = g("TridiagonalSolve", {AdjointDiagonals(g, g.input(0)), d}, attrs);
  g.set(0, g("Neg", {ThreeDiagonals(g, db, x)}));
  g.set(1, db);
  return g.status();
}

HR_OP(TridiagonalSolve)
    .Input("diagonals: T")
    .Input("rhs: T")
    .Output("output: T")
    .Attr("partial_pivoting: bool = true")
    .Attr("perturb_singular: bool = false")
    .Attr(kBandedTypes)
    .Doc("Solutions of systems whose matrices have three diagonals.")
    .Shape(TridiagonalShape)
    .Gradient(TridiagonalSolveGradient)
    .GradientSkips({1}, {})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<TridiagonalSolveOp>>);

Status TridiagonalMatMulShape(ShapeContext& c) {
  const Shape& b = c.input(3);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  for (int i = 0; i < 3; ++i) {
    const Shape& d = c.input(i);
    HR_RETURN_IF_ERROR(CheckRankAtLeast(d, 2));
    if (FromEnd(d, 2) >= 0 && FromEnd(d, 2) != 1) {
      return InvalidArgument("a diagonal must be a row, got ", d);
    }
    if (FromEnd(d, 1) >= 0 && FromEnd(b, 2) >= 0 &&
        FromEnd(d, 1) != FromEnd(b, 2)) {
      return InvalidArgument("a diagonal of ", FromEnd(d, 1),
                             " elements does not fit rhs ", b);
    }
    HR_RETURN_IF_ERROR(MergeShapes(BatchOf(d), BatchOf(b)).status());
  }
  c.set_output(0, b);
  return OkStatus();
}

struct TridiagonalMatMulOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape& b = c.input(3).shape();
    const int64_t n = FromEnd(b, 2), m = FromEnd(b, 1);
    return ForMatrices(BatchOf(b).num_elements(), 3.0 * n * m, [&](int64_t i) {
      const T *up = c.in<T>(0) + i * n, *main = c.in<T>(1) + i * n,
              *down = c.in<T>(2) + i * n, *x = c.in<T>(3) + i * n * m;
      T* y = c.out<T>(0) + i * n * m;
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t j = 0; j < m; ++j) {
          T sum = main[r] * x[r * m + j];
          // The unused ends of the diagonals are not read: they may hold
          // anything.
          if (r + 1 < n) sum += up[r] * x[(r + 1) * m + j];
          if (r > 0) sum += down[r] * x[(r - 1) * m + j];
          y[r * m + j] = sum;
        }
      }
      return OkStatus();
    });
  }
};

Status TridiagonalMatMulGradient(GradientContext& g) {
  Value d = g.grad();
  if (!d) return g.status();
  const Value& x = g.input(3);
  auto as_row = [&](const Value& v) {
    return g("ExpandDims", {v, g.Int32(-2)});
  };
  g.set(0, as_row(Above(g, d, x)));
  g.set(1, as_row(Diagonal(g, d, x)));
  g.set(2, as_row(Below(g, d, x)));
  Value all = g("ConcatV2", {g.input(0), g.input(1), g.input(2), g.Int32(-2)},
                {{"N", 3}});
  HR_RETURN_IF_ERROR(g.status());
  Value turned = AdjointDiagonals(g, all);
  auto part = [&](int i) { return Along(g, turned, 2, i, i < 2 ? i + 1 : 0); };
  g.set(3, g("TridiagonalMatMul", {part(0), part(1), part(2), d}));
  return g.status();
}

HR_OP(TridiagonalMatMul)
    .Input("superdiag: T")
    .Input("maindiag: T")
    .Input("subdiag: T")
    .Input("rhs: T")
    .Output("output: T")
    .Attr(kBandedTypes)
    .Doc("Products of matrices that have three diagonals.")
    .Shape(TridiagonalMatMulShape)
    .Gradient(TridiagonalMatMulGradient)
    .GradientSkips({}, {0})
    .Vectorize(VectorizeBatched)
    .Cpu(ComputeFor<PickMatrix<TridiagonalMatMulOp>>);

// bands[i] holds the i-th diagonal from the main one (lower) or from the
// farthest above (upper), each entry in the column of its matrix element.
Status BandedShape(ShapeContext& c) {
  const Shape &a = c.input(0), &b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(a, 2));
  HR_RETURN_IF_ERROR(CheckRankAtLeast(b, 2));
  const int64_t n = FromEnd(a, 1), bands = FromEnd(a, 2);
  if (n >= 0 && FromEnd(b, 2) >= 0 && n != FromEnd(b, 2)) {
    return InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ",
                           FromEnd(b, 2), ": ", a, " ", b);
  }
  if (bands == 0 || (bands > 0 && n >= 0 && bands > n)) {
    return InvalidArgument(
        "Invalid number of bands: ", bands,
        "; it must be at least 1 and at most the number of columns");
  }
  StatusOr<Shape> batch = BroadcastShapes(BatchOf(a), BatchOf(b));
  if (!batch.ok()) {
    return c.Refuse(NotBroadcast(BatchOf(a), BatchOf(b)), batch.status());
  }
  c.set_output(0,
               WithMatrix(*batch, n >= 0 ? n : FromEnd(b, 2), FromEnd(b, 1)));
  return OkStatus();
}

// Element (row, column) of the banded matrix; within its bands.
template <typename T>
T Element(const T* a, int64_t n, int64_t bands, bool lower, int64_t row,
          int64_t column) {
  const int64_t off = lower ? row - column : column - row;
  if (off < 0 || off >= bands) return T(0);
  return lower ? a[off * n + row] : a[(bands - 1 - off) * n + row];
}

template <typename T>
Status SolveBanded(const T* a, int64_t n, int64_t bands, const T* b, int64_t m,
                   bool lower, bool adjoint, T* x) {
  // The adjoint of a lower triangle is an upper one.
  const bool forward = lower != adjoint;
  std::copy(b, b + n * m, x);
  auto at = [&](int64_t r, int64_t c) {
    if (!adjoint) return Element(a, n, bands, lower, r, c);
    T v = Element(a, n, bands, lower, c, r);
    if constexpr (!std::is_same_v<T, Real<T>>) v = std::conj(v);
    return v;
  };
  for (int64_t s = 0; s < n; ++s) {
    const int64_t r = forward ? s : n - 1 - s;
    const T pivot = at(r, r);
    if (pivot == T(0)) {
      return InvalidArgument("Input matrix is not invertible.");
    }
    for (int64_t off = 1; off < bands; ++off) {
      const int64_t c = forward ? r - off : r + off;
      if (c < 0 || c >= n) break;
      const T v = at(r, c);
      for (int64_t j = 0; j < m; ++j) x[r * m + j] -= v * x[c * m + j];
    }
    for (int64_t j = 0; j < m; ++j) x[r * m + j] /= pivot;
  }
  return OkStatus();
}

struct BandedSolveOp {
  template <typename T>
  static Status Run(KernelContext& c) {
    const Shape &a = c.input(0).shape(), &b = c.input(1).shape();
    const int64_t n = FromEnd(a, 1), bands = FromEnd(a, 2), m = FromEnd(b, 1);
    const Shape batch = BatchOf(c.output(0).shape());
    const int64_t count = batch.num_elements();
    if (BatchOf(a).num_elements() != count ||
        BatchOf(b).num_elements() != count) {
      return Unimplemented(
          "BandedTriangularSolve with batch dimensions that broadcast: ", a,
          " and ", b);
    }
    const bool lower = c.op().bool_attr("lower");
    const bool adjoint = c.op().bool_attr("adjoint");
    return ForMatrices(count, 2.0 * n * bands * m, [&](int64_t i) {
      return SolveBanded(c.in<T>(0) + i * bands * n, n, bands,
                         c.in<T>(1) + i * n * m, m, lower, adjoint,
                         c.out<T>(0) + i * n * m);
    });
  }
};

Status BandedGradient(GradientContext& g) {
  Value d = g.grad(), y = g.output(0);
  if (!d) return g.status();
  const bool lower = g.op().bool_attr("lower");
  const bool adjoint = g.op().bool_attr("adjoint");
  Value db = g("BandedTriangularSolve", {g.input(0), d},
               {{"lower", lower}, {"adjoint", !adjoint}});
  // With y = a^-1 b (or a^-H b) the gradient for a is -db y^H (or -y db^H), of
  // which only the bands are parameters.
  Value da =
      adjoint ? MatMul(g, y, db, false, true) : MatMul(g, db, y, false, true);
  Value zero = g.Scalar(d.dtype(), 0), none = g.Int32(0);
  Value most = g("Sub", {SizeFromEnd(g, g.input(0), 2), g.Int32(1)});
  Value bands =
      lower ? g("Pack", {g("Neg", {most}), none}) : g("Pack", {none, most});
  // LEFT_RIGHT puts each diagonal where the op's layout has it: entries stand
  // in the column of their matrix element.
  Value diagonals = g("MatrixDiagPartV3", {g("Neg", {da}), bands, zero},
                      {{"align", "LEFT_RIGHT"}});
  g.set(0, diagonals);
  g.set(1, db);
  return g.status();
}

HR_OP(BandedTriangularSolve)
    .Input("matrix: T")
    .Input("rhs: T")
    .Output("output: T")
    .Attr("lower: bool = true")
    .Attr("adjoint: bool = false")
    .Attr("T: {double, float, half, complex64, complex128}")
    .Doc("Solutions of banded triangular systems.")
    .Shape(BandedShape)
    .Gradient(BandedGradient)
    .Cpu(ComputeFor<PickMatrix<BandedSolveOp>>);

}  // namespace
}  // namespace headrace
