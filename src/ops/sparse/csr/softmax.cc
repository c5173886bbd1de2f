// Softmax over the entries of each row, and its gradient.
#include <algorithm>
#include <cmath>

#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

Status CsrSoftmaxRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, CsrShapeInput(c, 0));
  if (c.num_inputs() > 1) {
    HR_ASSIGN_OR_RETURN(const Shape other, CsrShapeInput(c, 1));
    HR_ASSIGN_OR_RETURN(shape, MergeShapes(shape, other));
  }
  SetCsrShape(c, c.op().type_attr("type"), std::move(shape));
  return OkStatus();
}

template <typename T>
void SoftmaxRow(const T* x, int64_t n, T* y) {
  if (n == 0) return;
  const T most = *std::max_element(x, x + n);
  T sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - most);
  for (int64_t i = 0; i < n; ++i) y[i] /= sum;
}

// Calls f(batch, row, begin, end) of every row, the entries within the batch.
template <typename F>
void ForEachCsrRow(const CsrMatrix& m, F f) {
  for (int64_t b = 0; b < m.batches(); ++b) {
    const int32_t* rows = m.row_ptrs(b);
    for (int64_t r = 0; r < m.rows(); ++r) f(b, r, rows[r], rows[r + 1]);
  }
}

Status CsrSoftmax(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  HR_RETURN_IF_ERROR(CheckCsrType(*m, c.op().type_attr("type"), "logits"));
  HR_ASSIGN_OR_RETURN(Tensor out,
                      Tensor::Allocate(m->dtype(), Shape{m->entries()}));
  DispatchDType(m->dtype(), TypeList<float, double>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForEachCsrRow(*m, [&](int64_t b, int64_t, int32_t begin, int32_t end) {
      SoftmaxRow(m->values<T>(b) + begin, end - begin,
                 out.data<T>() + m->begin(b) + begin);
    });
  });
  return SetCsrOutput(c, m->WithValues(std::move(out)));
}

// What `m` has in a row at each of `n` columns; zero where it has no entry.
template <typename T>
void ValuesInRow(const CsrMatrix& m, int64_t batch, int64_t row,
                 const int32_t* cols, int64_t n, std::vector<T>& out) {
  const int32_t begin = m.row_ptrs(batch)[row];
  const int64_t count = m.row_ptrs(batch)[row + 1] - begin;
  const int32_t* own = m.col_inds(batch) + begin;
  const T* x = m.values<T>(batch) + begin;
  if (count == n && std::equal(own, own + n, cols)) {
    out.assign(x, x + n);
    return;
  }
  std::vector<std::pair<int32_t, T>> sorted;
  for (int64_t i = 0; i < count; ++i) sorted.emplace_back(own[i], x[i]);
  const auto by_column = [](const auto& p, const auto& q) {
    return p.first < q.first;
  };
  std::stable_sort(sorted.begin(), sorted.end(), by_column);
  out.assign(n, T(0));
  for (int64_t i = 0; i < n; ++i) {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(),
                                     std::pair(cols[i], T(0)), by_column);
    if (at != sorted.end() && at->first == cols[i]) out[i] = at->second;
  }
}

template <typename T>
void SoftmaxGradientOf(const CsrMatrix& y, const CsrMatrix& dy, T* dx) {
  std::vector<T> row;
  ForEachCsrRow(y, [&](int64_t b, int64_t r, int32_t begin, int32_t end) {
    const T* p = y.values<T>(b) + begin;
    const int64_t n = end - begin;
    ValuesInRow<T>(dy, b, r, y.col_inds(b) + begin, n, row);
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += p[i] * row[i];
    T* to = dx + y.begin(b) + begin;
    for (int64_t i = 0; i < n; ++i) to[i] = p[i] * (row[i] - sum);
  });
}

Status CsrSoftmaxGradient(KernelContext& c) {
  const DType dtype = c.op().type_attr("type");
  HR_ASSIGN_OR_RETURN(const CsrMatrix* y, CsrInput(c, 0));
  HR_RETURN_IF_ERROR(CheckCsrType(*y, dtype, "softmax"));
  HR_ASSIGN_OR_RETURN(const CsrMatrix* dy, CsrInput(c, 1));
  HR_RETURN_IF_ERROR(CheckCsrType(*dy, dtype, "grad_softmax"));
  if (y->shape() != dy->shape()) {
    return InvalidArgument(
        "Shapes of softmax and grad_softmax must match, saw: ", y->shape(),
        " vs. ", dy->shape());
  }
  HR_ASSIGN_OR_RETURN(Tensor dx, Tensor::Allocate(dtype, Shape{y->entries()}));
  DispatchDType(dtype, TypeList<float, double>{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SoftmaxGradientOf<T>(*y, *dy, dx.data<T>());
  });
  return SetCsrOutput(c, y->WithValues(std::move(dx)));
}

Status SoftmaxOpGradient(GradientContext& g) {
  Value dy = g.grad();
  g.set(0, g("SparseMatrixSoftmaxGrad", {g.output(0), dy},
             {{"type", g.op().type_attr("type")}}));
  return g.status();
}

HR_OP(SparseMatrixSoftmax)
    .Input("logits: variant")
    .Output("softmax: variant")
    .Attr("type: {float, double}")
    .Doc("Softmax over the entries of each row.")
    .Shape(CsrSoftmaxRule)
    .Gradient(SoftmaxOpGradient)
    .GradientSkips({0}, {})
    .Cpu(ComputeOwn<CsrSoftmax>);

HR_OP(SparseMatrixSoftmaxGrad)
    .Input("softmax: variant")
    .Input("grad_softmax: variant")
    .Output("gradient: variant")
    .Attr("type: {float, double}")
    .Doc("The gradient of SparseMatrixSoftmax, of its output and its own.")
    .Shape(CsrSoftmaxRule)
    .Cpu(ComputeOwn<CsrSoftmaxGradient>);

}  // namespace
}  // namespace headrace
