#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

template <typename T>
void TransposeOne(const CsrMatrix& a, int64_t b, bool conjugate, int32_t* rows,
                  int32_t* cols, T* y) {
  const int32_t *from = a.row_ptrs(b), *col = a.col_inds(b);
  const T* x = a.values<T>(b);
  const int64_t n = a.entries(b);
  // rows[k + 1] counts to where the next entry of row k goes.
  std::fill_n(rows, a.cols() + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++rows[col[i] + 1];
  for (int64_t k = 0; k < a.cols(); ++k) rows[k + 1] += rows[k];
  for (int64_t k = a.cols(); k > 0; --k) rows[k] = rows[k - 1];
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int32_t i = from[r]; i < from[r + 1]; ++i) {
      const int32_t to = rows[col[i] + 1]++;
      cols[to] = static_cast<int32_t>(r);
      y[to] = conjugate ? ConjugateValue(x[i]) : x[i];
    }
  }
}

Status TransposeRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, CsrShapeInput(c, 0));
  SetCsrShape(c, c.op().type_attr("type"), SwapMatrix(std::move(shape)));
  return OkStatus();
}

Status Transpose(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  HR_RETURN_IF_ERROR(CheckCsrType(*m, c.op().type_attr("type"), "input"));
  HR_ASSIGN_OR_RETURN(CsrPtr y,
                      TransposeCsr(*m, c.op().bool_attr("conjugate")));
  return SetCsrOutput(c, std::move(y));
}

Status TransposeGradient(GradientContext& g) {
  Value dy = g.grad();
  g.set(0, g("SparseMatrixTranspose", {dy},
             {{"conjugate", g.op().bool_attr("conjugate")},
              {"type", g.op().type_attr("type")}}));
  return g.status();
}

HR_OP(SparseMatrixTranspose)
    .Input("input: variant")
    .Output("output: variant")
    .Attr("conjugate: bool = false")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("The transpose of a matrix in compressed rows.")
    .Shape(TransposeRule)
    .Gradient(TransposeGradient)
    .GradientSkips({0}, {0})
    .Cpu(ComputeOwn<Transpose>);

}  // namespace

StatusOr<std::shared_ptr<CsrMatrix>> TransposeCsr(const CsrMatrix& a,
                                                  bool conjugate) {
  const Shape shape = SwapMatrix(a.shape());
  HR_RETURN_IF_ERROR(CheckCsrShape(shape));
  HR_ASSIGN_OR_RETURN(
      Tensor rows,
      Tensor::Allocate(DType::kInt32, Shape{a.batches() * (a.cols() + 1)}));
  HR_ASSIGN_OR_RETURN(Tensor cols,
                      Tensor::Allocate(DType::kInt32, Shape{a.entries()}));
  HR_ASSIGN_OR_RETURN(Tensor values,
                      Tensor::Allocate(a.dtype(), Shape{a.entries()}));
  DispatchDType(a.dtype(), CsrTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t b = 0; b < a.batches(); ++b) {
      TransposeOne<T>(
          a, b, conjugate, rows.data<int32_t>() + b * (a.cols() + 1),
          cols.data<int32_t>() + a.begin(b), values.data<T>() + a.begin(b));
    }
  });
  return CsrMatrix::Make(CsrDenseShape(shape), a.batch_ptrs(), std::move(rows),
                         std::move(cols), std::move(values));
}

}  // namespace headrace
