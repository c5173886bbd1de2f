// What a CSR matrix is made of, how many entries it has, and empty ones.
#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

Status ComponentsRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape shape, CsrShapeInput(c, 0));
  HR_RETURN_IF_ERROR(CheckRank(c.input(1), 0));
  const int64_t rows = shape.known_rank() ? shape[shape.rank() - 2] : -1;
  c.set_output(0, Shape{rows < 0 ? -1 : rows + 1});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{-1});
  return OkStatus();
}

Status Components(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  HR_RETURN_IF_ERROR(CheckCsrType(*m, c.op().type_attr("type"), "input"));
  const int64_t b = c.input(1).scalar<int32_t>();
  if (b < 0 || b >= m->batches()) {
    return InvalidArgument("index (", b, ") not in [0, ", m->batches(), ")");
  }
  const int64_t rows = m->rows() + 1;
  c.set_output(0, m->row_ptrs().Rows(b * rows, (b + 1) * rows));
  c.set_output(1, m->col_inds().Rows(m->begin(b), m->begin(b + 1)));
  c.set_output(2, m->values().Rows(m->begin(b), m->begin(b + 1)));
  return OkStatus();
}

HR_OP(CSRSparseMatrixComponents)
    .Input("csr_sparse_matrix: variant")
    .Input("index: int32")
    .Output("row_ptrs: int32")
    .Output("col_inds: int32")
    .Output("values: type")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("Row pointers, columns and values of one matrix of a batch.")
    .Shape(ComponentsRule)
    .Cpu(ComputeOwn<Components>);

Status CountRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape shape, CsrShapeInput(c, 0));
  c.set_output(0, shape.known_rank() ? shape.Sub(0, -2) : shape);
  return OkStatus();
}

Status CountEntries(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  HR_RETURN_IF_ERROR(c.Allocate(0, m->shape().Sub(0, -2)));
  for (int64_t b = 0; b < m->batches(); ++b) {
    c.out<int32_t>(0)[b] = static_cast<int32_t>(m->entries(b));
  }
  return OkStatus();
}

HR_OP(SparseMatrixNNZ)
    .Input("sparse_matrix: variant")
    .Output("nnz: int32")
    .Doc("The number of entries of each matrix of a batch.")
    .Shape(CountRule)
    .NoGradient()
    .Cpu(ComputeOwn<CountEntries>);

Status ZerosRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 1));
  HR_ASSIGN_OR_RETURN(Shape shape, c.ShapeValue(0));
  if (shape.known_rank() && shape.rank() != 2 && shape.rank() != 3) {
    return InvalidArgument("Invalid rank: ", shape.rank(),
                           ".  Expected a known rank of either 2 or 3.");
  }
  SetCsrShape(c, c.op().type_attr("type"), std::move(shape));
  return OkStatus();
}

Status MakeZeros(KernelContext& c) {
  const Shape shape(c.input(0).span<int64_t>());
  HR_ASSIGN_OR_RETURN(CsrPtr m, ZeroCsr(c.op().type_attr("type"), shape));
  return SetCsrOutput(c, std::move(m));
}

HR_OP(SparseMatrixZeros)
    .Input("dense_shape: int64")
    .Output("sparse_matrix: variant")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("A matrix in compressed rows without entries.")
    .Shape(ZerosRule)
    .NoGradient()
    .Cpu(ComputeOwn<MakeZeros>);

}  // namespace
}  // namespace headrace
