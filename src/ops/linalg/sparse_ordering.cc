// SparseMatrixOrderingAMD: an order of rows and columns that fills in little.
#include "Eigen/OrderingMethods"
#include "Eigen/SparseCore"
#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

Status OrderingRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape shape, CsrShapeInput(c, 0));
  if (!shape.known_rank()) {
    c.set_output(0, shape);
    return OkStatus();
  }
  const int r = shape.rank();
  if (shape[r - 1] >= 0 && shape[r - 2] >= 0 && shape[r - 1] != shape[r - 2]) {
    return InvalidArgument("Dimensions must be equal, but are ", shape[r - 2],
                           " and ", shape[r - 1]);
  }
  c.set_output(0, shape.Sub(0, -1));
  return OkStatus();
}

// Of the places in the lower triangle and their mirror images.
void OrderOne(const CsrMatrix& m, int64_t batch, int32_t* out) {
  const int n = static_cast<int>(m.rows());
  std::vector<Eigen::Triplet<float, int>> places;
  const int32_t *rows = m.row_ptrs(batch), *cols = m.col_inds(batch);
  for (int r = 0; r < n; ++r) {
    for (int32_t i = rows[r]; i < rows[r + 1]; ++i) {
      // Only the lower triangle counts; the view below mirrors it.
      if (cols[i] <= r) places.emplace_back(r, cols[i], 1.0f);
    }
  }
  Eigen::SparseMatrix<float, Eigen::ColMajor, int> lower(n, n);
  lower.setFromTriplets(places.begin(), places.end());
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order(n);
  Eigen::AMDOrdering<int>()(lower.selfadjointView<Eigen::Lower>(), order);
  std::copy_n(order.indices().data(), n, out);
}

Status Ordering(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  const int64_t n = m->rows();
  if (n != m->cols()) {
    return InvalidArgument("sparse matrix must be square; got: ", n,
                           " != ", m->cols());
  }
  // The symmetric places, with the room that ordering needs, count by int32.
  if (m->entries() + n > (int64_t{1} << 28)) {
    return InvalidArgument("SparseMatrixOrderingAMD: ", m->entries(),
                           " entries in ", n, " rows are too many");
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, m->shape().Sub(0, -1)));
  for (int64_t b = 0; b < m->batches(); ++b) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    if (n > 0) OrderOne(*m, b, c.out<int32_t>(0) + b * n);
  }
  return OkStatus();
}

HR_OP(SparseMatrixOrderingAMD)
    .Input("input: variant")
    .Output("output: int32")
    .Doc("An order of rows and columns by approximate minimum degree.")
    .Shape(OrderingRule)
    .Cpu(ComputeOwn<Ordering>);

}  // namespace
}  // namespace headrace
