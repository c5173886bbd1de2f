#include "ops/linalg/factor_gradients.h"

#include <algorithm>

#include "ops/linalg/matrix_op.h"

namespace headrace {
namespace {

// Vectors as the columns (rows) of matrices of one column (row).
Value AsColumn(OpScope& s, const Value& v) {
  return s("ExpandDims", {v, s.Int32(-1)});
}
Value AsRow(OpScope& s, const Value& v) {
  return s("ExpandDims", {v, s.Int32(-2)});
}

// 1 / (v_j - v_i) for i != j, zero where they are equal.
Value InverseGaps(OpScope& s, const Value& v) {
  Value gaps = s("Sub", {AsRow(s, v), AsColumn(s, v)});
  // Equal values have no gap; upstream lets such pairs count for nothing, too.
  return s("DivNoNan", {s("OnesLike", {gaps}), gaps});
}

// x r^-H for upper triangular r.
Value OverAdjoint(OpScope& s, const Value& x, const Value& r) {
  return Adjoint(
      s, s("MatrixTriangularSolve", {r, Adjoint(s, x)}, {{"lower", false}}));
}

// Tall or square: m >= n, thin q.
Value TallQr(OpScope& s, const Value& q, const Value& r, const Value& dq,
             const Value& dr) {
  // Walter and Lehmann, "Algorithmic differentiation of linear algebra
  // functions" (2010), as upstream's gradient.
  Value qdq = MatMul(s, q, dq, true);
  Value a = s("Sub", {qdq, Adjoint(s, qdq)});
  Value rdr = MatMul(s, r, dr, false, true);
  Value b = s("Sub", {rdr, Adjoint(s, rdr)});
  Value lower = Triangle(s, s("AddV2", {a, b}), true);
  if (IsComplex(q.dtype())) {
    // The diagonal's imaginary part counts half.
    lower = s("MatrixSetDiag", {lower, s("Mul", {s("MatrixDiagPart", {lower}),
                                                 s.Scalar(q.dtype(), 0.5)})});
  }
  Value first = MatMul(s, q, s("AddV2", {dr, OverAdjoint(s, lower, r)}));
  Value rest = s("Sub", {dq, MatMul(s, q, qdq)});
  return s("AddV2", {first, OverAdjoint(s, rest, r)});
}

// Columns [from, to) of matrices, which have that many dimensions.
Value Columns(OpScope& s, const Value& a, int rank, int64_t from, int64_t to) {
  std::vector<int32_t> begin(rank, 0), size(rank, -1);
  begin[rank - 1] = static_cast<int32_t>(from);
  size[rank - 1] = static_cast<int32_t>(to - from);
  return s("Slice", {a, s.Int32s(begin), s.Int32s(size)});
}

}  // namespace

Status QrGradient(GradientContext& g) {
  if (!g.grad(0) && !g.grad(1)) return g.status();
  const Value &q = g.output(0), &r = g.output(1);
  Value dq = g.grad_or_zeros(0), dr = g.grad_or_zeros(1);
  const int64_t m = FromEnd(q.shape(), 2), n = FromEnd(r.shape(), 1);
  const int64_t k = FromEnd(q.shape(), 1);
  if (m < 0 || n < 0 || k < 0) {
    return Unimplemented("the gradient of Qr with sizes that are not known");
  }
  if (m > n && g.op().bool_attr("full_matrices")) {
    return Unimplemented(
        "QrGrad not implemented when nrows > ncols and full_matrices is true. "
        "Received r.shape=",
        r.shape());
  }
  if (m >= n) {
    g.set(0, TallQr(g, q, r, dq, dr));
    return g.status();
  }
  // Wide: r = [u, v] and a = [x, y] with x = q u, y = q v.
  const int rank = r.rank();
  Value u = Columns(g, r, rank, 0, m);
  Value du = Columns(g, dr, rank, 0, m), dv = Columns(g, dr, rank, m, n);
  // y = q v brings in a further way from q: dq += y dv^H, and what remains is
  // the gradient of a square factor.
  Value y = MatMul(g, q, Columns(g, r, rank, m, n));
  Value dqv = g("AddV2", {dq, MatMul(g, y, dv, false, true)});
  Value dx = TallQr(g, q, u, dqv, du);
  Value dy = MatMul(g, q, dv);
  g.set(0, g("ConcatV2", {dx, dy, g.Int32(-1)}));
  return g.status();
}

Status SelfAdjointEigGradient(GradientContext& g) {
  Value de = g.grad(0), dv = g.grad(1), e = g.output(0), v = g.output(1);
  if (!de && !dv) return g.status();
  Value middle;
  if (g.op().bool_attr("compute_v")) {
    if (de) middle = g("MatrixDiag", {de});
    if (dv) {
      Value part = g("Mul", {InverseGaps(g, e), MatMul(g, v, dv, true)});
      middle = middle ? g("AddV2", {middle, part}) : part;
    }
  } else {
    // The values' gradient needs the vectors, which the op was not asked for.
    ValueList both = g.All("SelfAdjointEigV2", {g.input(0)});
    if (!g.ok()) return g.status();
    v = both[1];
    if (!de) return g.status();
    middle = g("MatrixDiag", {de});
  }
  Value da = MatMul(g, MatMul(g, v, middle), v, false, true);
  // Only the lower triangle is read.
  // The matrix above the diagonal is taken for the mirror image of what is
  // below, so its gradient is added there; the diagonal, added to itself,
  // counts half.
  Value lower = Triangle(g, g("AddV2", {da, Adjoint(g, da)}), true);
  g.set(0, HalfDiagonal(g, lower));
  return g.status();
}

Status EigGradient(GradientContext& g) {
  Value de = g.grad(0), dv = g.grad(1), e = g.output(0), v = g.output(1);
  if (!de && !dv) return g.status();
  Value middle;
  if (g.op().bool_attr("compute_v")) {
    if (de) middle = g("MatrixDiag", {de});
    if (dv) {
      Value f = g("Conj", {InverseGaps(g, e)});
      Value vdv = MatMul(g, v, dv, true);
      // Vectors have length one: what would change it counts for nothing.
      Value lengths = g("MatrixDiagPart", {vdv});
      Value real =
          g("Cast", {g("Real", {lengths}, {{"Tout", RealType(e.dtype())}})},
            {{"DstT", e.dtype()}});
      Value norms = MatMul(g, v, v, true);
      Value fixed = g("Sub", {vdv, g("Mul", {norms, AsRow(g, real)})});
      Value part = g("Mul", {f, fixed});
      middle = middle ? g("AddV2", {middle, part}) : part;
    }
  } else {
    ValueList both = g.All("Eig", {g.input(0)}, {{"Tout", e.dtype()}});
    if (!g.ok() || !de) return g.status();
    v = both[1];
    middle = g("MatrixDiag", {de});
  }
  // v^-H middle v^H.
  Value da =
      g("MatrixSolve", {Adjoint(g, v), MatMul(g, middle, v, false, true)});
  const DType in = g.input(0).dtype();
  // The eigenvalues are complex though the matrix is real.
  if (!IsComplex(in)) da = g("Real", {da}, {{"Tout", in}});
  g.set(0, da);
  return g.status();
}

// With f_ij = 1 / (s_j^2 - s_i^2): the middle is diag(ds) + (f o skew(u^H du))
// s + s (f o skew(v^H dv)), plus what lies outside the spans of u and v.
Status SvdGradient(GradientContext& g) {
  Value ds = g.grad(0), du = g.grad(1), dv = g.grad(2);
  if (!ds && !du && !dv) return g.status();
  const Value& a = g.input(0);
  Value s = g.output(0), u = g.output(1), v = g.output(2);
  if (!g.op().bool_attr("compute_uv")) {
    ValueList all = g.All("Svd", {a});
    if (!g.ok() || !ds) return g.status();
    // For the values alone it is u diag(ds) v^H.
    Value scaled = g("Mul", {all[1], AsRow(g, ds)});
    g.set(0, MatMul(g, scaled, all[2], false, true));
    return g.status();
  }
  const int64_t m = FromEnd(a.shape(), 2), n = FromEnd(a.shape(), 1);
  if (m < 0 || n < 0) {
    return Unimplemented(
        "SVD gradient has not been implemented for input "
        "with unknown inner matrix shape.");
  }
  if (IsComplex(a.dtype()) && (du || dv)) {
    return Unimplemented("the gradient of a complex Svd's vectors");
  }
  const int64_t k = std::min(m, n);
  // With at most one vector more than values, that vector is given by the
  // others (up to its sign), so its gradient is left out.
  if (g.op().bool_attr("full_matrices")) {
    if (std::max(m, n) - k > 1) {
      return Unimplemented(
          "svd gradient is not implemented for abs(m - n) > 1 "
          "when full_matrices is True");
    }
    u = Columns(g, u, u.rank(), 0, k);
    v = Columns(g, v, v.rank(), 0, k);
    if (du) du = Columns(g, du, u.rank(), 0, k);
    if (dv) dv = Columns(g, dv, v.rank(), 0, k);
  }
  Value f = InverseGaps(g, g("Square", {s}));
  Value inverse = g("DivNoNan", {g("OnesLike", {s}), s});
  auto skew = [&](const Value& x, const Value& dx) {
    Value p = MatMul(g, x, dx, true);
    return g("Mul", {f, g("Sub", {p, Adjoint(g, p)})});
  };
  Value middle;
  auto add = [&](const Value& part) {
    middle = middle ? g("AddV2", {middle, part}) : part;
  };
  if (ds) add(g("MatrixDiag", {ds}));
  if (du) add(g("Mul", {skew(u, du), AsRow(g, s)}));
  if (dv) add(g("Mul", {AsColumn(g, s), skew(v, dv)}));
  Value da = MatMul(g, MatMul(g, u, middle), v, false, true);
  auto outside = [&](const Value& x, const Value& dx) {
    // What of dx does not lie in the span of x.
    Value rest = g("Sub", {dx, MatMul(g, x, MatMul(g, x, dx, true))});
    return g("Mul", {rest, AsRow(g, inverse)});
  };
  if (du && m > k) {
    da = g("AddV2", {da, MatMul(g, outside(u, du), v, false, true)});
  }
  if (dv && n > k) {
    da = g("AddV2", {da, MatMul(g, u, outside(v, dv), false, true)});
  }
  g.set(0, da);
  return g.status();
}

}  // namespace headrace
