// SparseMatrixAdd and SparseMatrixMul.
#include <algorithm>
#include <cstring>

#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

template <typename T>
using RowEntries = std::vector<std::pair<int32_t, T>>;

// Adds `scale` times a row's entries, in their order.
template <typename T>
void AppendRow(const CsrMatrix& m, int64_t batch, int64_t row, T scale,
               RowEntries<T>& to) {
  const int32_t *rows = m.row_ptrs(batch), *cols = m.col_inds(batch);
  const T* x = m.values<T>(batch);
  for (int32_t i = rows[row]; i < rows[row + 1]; ++i) {
    to.emplace_back(cols[i], scale * x[i]);
  }
}

// Both halves of a row, `middle` entries and the rest, as one by rising column.
template <typename T>
void MergeHalves(RowEntries<T>& row, int64_t middle) {
  const auto by_column = [](const auto& x, const auto& y) {
    return x.first < y.first;
  };
  const auto half = row.begin() + middle;
  for (auto [from, to] :
       {std::pair(row.begin(), half), std::pair(half, row.end())}) {
    if (std::is_sorted(from, to, by_column)) continue;
    std::stable_sort(from, to, by_column);
  }
  std::inplace_merge(row.begin(), half, row.end(), by_column);
}

template <typename T>
StatusOr<std::shared_ptr<CsrMatrix>> MergeRows(const CsrMatrix& a,
                                               const CsrMatrix& b, T alpha,
                                               T beta) {
  HR_ASSIGN_OR_RETURN(auto out, CsrBuilder<T>::Make(a.shape()));
  RowEntries<T> row;
  for (int64_t i = 0; i < a.batches() * a.rows(); ++i) {
    const int64_t batch = i / a.rows(), r = i % a.rows();
    row.clear();
    AppendRow(a, batch, r, alpha, row);
    const auto middle = static_cast<int64_t>(row.size());
    AppendRow(b, batch, r, beta, row);
    MergeHalves(row, middle);
    for (size_t j = 0; j < row.size();) {
      const int32_t column = row[j].first;
      T sum = row[j].second;
      for (++j; j < row.size() && row[j].first == column; ++j) {
        sum += row[j].second;
      }
      out.Add(column, sum);
    }
    HR_RETURN_IF_ERROR(out.CloseRow());
  }
  return out.Finish();
}

bool SameElements(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return false;
  return a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

bool SamePlaces(const CsrMatrix& a, const CsrMatrix& b) {
  return SameElements(a.batch_ptrs(), b.batch_ptrs()) &&
         SameElements(a.row_ptrs(), b.row_ptrs()) &&
         SameElements(a.col_inds(), b.col_inds());
}

template <typename T>
StatusOr<std::shared_ptr<CsrMatrix>> AddOf(const CsrMatrix& a,
                                           const CsrMatrix& b, T alpha,
                                           T beta) {
  if (!SamePlaces(a, b)) return MergeRows(a, b, alpha, beta);
  HR_ASSIGN_OR_RETURN(Tensor sum,
                      Tensor::Allocate(a.dtype(), Shape{a.entries()}));
  const T *x = a.values().data<T>(), *y = b.values().data<T>();
  for (int64_t i = 0; i < a.entries(); ++i) {
    sum.data<T>()[i] = alpha * x[i] + beta * y[i];
  }
  return a.WithValues(std::move(sum));
}

Status AddRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape a, CsrShapeInput(c, 0));
  HR_ASSIGN_OR_RETURN(const Shape b, CsrShapeInput(c, 1));
  HR_RETURN_IF_ERROR(CheckRank(c.input(2), 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(3), 0));
  HR_ASSIGN_OR_RETURN(Shape out, MergeShapes(a, b));
  SetCsrShape(c, c.input_dtype(2), std::move(out));
  return OkStatus();
}

Status Add(KernelContext& c) {
  const CsrMatrix* m[2];
  const char* names[] = {"a", "b"};
  for (int i = 0; i < 2; ++i) {
    HR_ASSIGN_OR_RETURN(m[i], CsrInput(c, i));
    HR_RETURN_IF_ERROR(CheckCsrType(*m[i], c.op().type_attr("T"), names[i]));
  }
  HR_ASSIGN_OR_RETURN(CsrPtr sum, AddCsr(*m[0], *m[1], c.input(2), c.input(3)));
  return SetCsrOutput(c, std::move(sum));
}

Value Scaled(GradientContext& g, const Value& m, Value by) {
  if (g.ok() && IsComplex(by.dtype())) by = g("Conj", {by});
  return g("SparseMatrixMul", {m, by});
}

// The sum of conj(m) times dc over the entries of m.
Value ScaleGradient(GradientContext& g, const Value& m, const Value& dc,
                    DType dtype) {
  const CsrEntries e = EntriesOf(g, m, dtype);
  if (!g.ok()) return Value();
  Value x = IsComplex(dtype) ? g("Conj", {e.values}) : e.values;
  return g("Sum", {g("Mul", {x, ValuesAt(g, e, dc, dtype)}), g.Int32(0)});
}

Status AddGradient(GradientContext& g) {
  Value dc = g.grad();
  for (int i = 0; i < 2; ++i) {
    if (g.wants(i)) g.set(i, Scaled(g, dc, g.input(2 + i)));
    if (g.wants(2 + i)) {
      g.set(2 + i, ScaleGradient(g, g.input(i), dc, g.input(2).dtype()));
    }
  }
  return g.status();
}

HR_OP(SparseMatrixAdd)
    .Input("a: variant")
    .Input("b: variant")
    .Input("alpha: T")
    .Input("beta: T")
    .Output("c: variant")
    .Attr("T: {float, double, complex64, complex128}")
    .Doc("alpha * a + beta * b of matrices in compressed rows.")
    .Shape(AddRule)
    .Gradient(AddGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<Add>);

Status ScaleRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape a, CsrShapeInput(c, 0));
  const Shape& b = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtMost(b, 3));
  if (b.known_rank() && b.rank() > 0) {
    if (b.rank() != 3 || (b[1] >= 0 && b[1] != 1) || (b[2] >= 0 && b[2] != 1)) {
      return Unimplemented(
          "b must be a scalar or shaped [batch_size, 1, 1], got ", b);
    }
    if (a.known_rank() && a.rank() != 3) {
      return Unimplemented(
          "b must be a scalar where a is one matrix, got shape ", b);
    }
    if (a.known_rank() && a[0] >= 0 && b[0] >= 0 && a[0] != b[0]) {
      return InvalidArgument("Dimensions must be equal, but are ", a[0],
                             " and ", b[0]);
    }
  }
  SetCsrShape(c, c.input_dtype(1), std::move(a));
  return OkStatus();
}

Status Scale(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* a, CsrInput(c, 0));
  const Tensor& by = c.input(1);
  HR_RETURN_IF_ERROR(CheckCsrType(*a, by.dtype(), "a"));
  const bool each = by.rank() > 0;
  if (each && a->rank() != 3) {
    return Unimplemented("b must be a scalar where a is one matrix, got shape ",
                         by.shape());
  }
  if (each && by.dim(0) != a->batches()) {
    return InvalidArgument("Batch sizes of a and b must match, saw: ",
                           a->batches(), " vs. ", by.dim(0));
  }
  HR_ASSIGN_OR_RETURN(Tensor y,
                      Tensor::Allocate(a->dtype(), Shape{a->entries()}));
  DispatchDType(a->dtype(), CsrTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t b = 0; b < a->batches(); ++b) {
      const T v = by.data<T>()[each ? b : 0];
      const T* x = a->values<T>(b);
      std::transform(x, x + a->entries(b), y.data<T>() + a->begin(b),
                     [v](T e) { return e * v; });
    }
  });
  return SetCsrOutput(c, a->WithValues(std::move(y)));
}

StatusOr<std::unique_ptr<Kernel>> BindScale(const ResolvedOp& op) {
  if (!DispatchDType(op.type_attr("T"), CsrTypes{}, [](auto) {})) {
    return nullptr;
  }
  return MakeKernel(Scale, /*own_outputs=*/true);
}

Status ScaleOpGradient(GradientContext& g) {
  const Value &a = g.input(0), &b = g.input(1);
  Value dc = g.grad();
  if (g.wants(0)) g.set(0, Scaled(g, dc, b));
  if (!g.wants(1)) return g.status();
  if (!b.shape().known_rank()) {
    return Unimplemented("the gradient of SparseMatrixMul for b of unknown ",
                         "rank");
  }
  if (b.rank() == 0) {
    g.set(1, ScaleGradient(g, a, dc, b.dtype()));
    return g.status();
  }
  // Sums matrix by matrix.
  const CsrEntries e = EntriesOf(g, a, b.dtype());
  if (!g.ok()) return g.status();
  Value x = IsComplex(b.dtype()) ? g("Conj", {e.values}) : e.values;
  Value products = g("Mul", {x, ValuesAt(g, e, dc, b.dtype())});
  Value batch = g("GatherV2", {e.indices, g.Int32(0), g.Int32(1)});
  Value shape = g.ShapeOf(b);
  Value count = g("GatherV2", {shape, g.Int32(0), g.Int32(0)});
  Value sums = g("UnsortedSegmentSum", {products, batch, count});
  g.set(1, g("Reshape", {sums, shape}));
  return g.status();
}

HR_OP(SparseMatrixMul)
    .Input("a: variant")
    .Input("b: T")
    .Output("output: variant")
    .Attr("T: type")
    .Doc("A matrix in compressed rows times a scalar, or one a matrix.")
    .Shape(ScaleRule)
    .Gradient(ScaleOpGradient)
    .GradientSkips({}, {0})
    .Cpu(BindScale);

}  // namespace

StatusOr<std::shared_ptr<CsrMatrix>> AddCsr(const CsrMatrix& a,
                                            const CsrMatrix& b,
                                            const Tensor& alpha,
                                            const Tensor& beta) {
  if (a.shape() != b.shape()) {
    return InvalidArgument("Shapes of a and b must match, saw: ", a.shape(),
                           " vs. ", b.shape());
  }
  StatusOr<std::shared_ptr<CsrMatrix>> sum = std::shared_ptr<CsrMatrix>();
  DispatchDType(a.dtype(), CsrTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    sum = AddOf<T>(a, b, alpha.scalar<T>(), beta.scalar<T>());
  });
  return sum;
}

}  // namespace headrace
