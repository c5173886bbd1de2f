// SparseMatrixSparseCholesky: A = L L^H of matrices in compressed rows, rows
// and columns taken in the order that `permutation` names.
#include <algorithm>
#include <cmath>

#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

Status CholeskyRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, CsrShapeInput(c, 0));
  const Shape& order = c.input(1);
  HR_RETURN_IF_ERROR(CheckRankAtLeast(order, 1));
  HR_RETURN_IF_ERROR(CheckRankAtMost(order, 2));
  if (shape.known_rank()) {
    const int r = shape.rank();
    if (shape[r - 1] >= 0 && shape[r - 2] >= 0 &&
        shape[r - 1] != shape[r - 2]) {
      return InvalidArgument("sparse matrix must be square; got: ",
                             shape[r - 2], " != ", shape[r - 1]);
    }
    if (order.known_rank()) {
      HR_RETURN_IF_ERROR(CheckRank(order, r - 1));
      HR_RETURN_IF_ERROR(MergeShapes(shape.Sub(0, -1), order).status());
    }
  }
  SetCsrShape(c, c.op().type_attr("type"), std::move(shape));
  return OkStatus();
}

// The places of a permutation; InvalidArgument when it is none.
StatusOr<std::vector<int32_t>> Inverse(const int32_t* order, int64_t n,
                                       int64_t batch) {
  std::vector<int32_t> at(n, -1);
  for (int64_t i = 0; i < n; ++i) {
    // A place that is taken already marks an index that comes twice.
    if (order[i] < 0 || order[i] >= n || at[order[i]] >= 0) {
      return InvalidArgument(
          "Sparse Cholesky factorization failed for batch index ", batch,
          ". permutation[", i, "] = ", order[i],
          " is out of range or there twice");
    }
    at[order[i]] = static_cast<int32_t>(i);
  }
  return at;
}

template <typename T>
struct Factor {
  // Rows of the lower triangle of the permuted matrix: (column, value).
  std::vector<std::vector<std::pair<int32_t, T>>> rows;
  // L by columns, without its diagonal: (row, value).
  std::vector<std::vector<std::pair<int32_t, T>>> columns;
};

// The lower triangle in the new order. Only the old one's is read.
template <typename T>
void PermuteLower(const CsrMatrix& m, int64_t b, const std::vector<int32_t>& at,
                  Factor<T>& f) {
  f.rows.resize(m.rows());
  const int32_t *rows = m.row_ptrs(b), *cols = m.col_inds(b);
  const T* x = m.values<T>(b);
  for (int64_t r = 0; r < m.rows(); ++r) {
    for (int32_t i = rows[r]; i < rows[r + 1]; ++i) {
      if (cols[i] > r) continue;
      const int32_t to = at[r], from = at[cols[i]];
      // An entry that the new order moves above the diagonal is its mirror
      // image's conjugate.
      if (to >= from) {
        f.rows[to].emplace_back(from, x[i]);
      } else {
        f.rows[from].emplace_back(to, ConjugateValue(x[i]));
      }
    }
  }
}

// Row k of L has entries where the elimination tree leads from those of the
// matrix; rows are made one after another.
template <typename T>
class RowMaker {
 public:
  explicit RowMaker(Factor<T>& f)
      : f_(f),
        n_(static_cast<int64_t>(f.rows.size())),
        parent_(n_, -1),
        mark_(n_, -1),
        work_(n_, T(0)),
        diagonal_(n_) {
    f_.columns.resize(n_);
  }

  // False when the matrix is not positive definite.
  bool Make(int64_t k, CsrBuilder<T>& out) {
    std::vector<int32_t> pattern;
    T pivot(0);
    // The walk up the tree ends at the row itself.
    mark_[k] = static_cast<int32_t>(k);
    for (const auto& [column, value] : f_.rows[k]) {
      if (column == k) {
        pivot += value;
        continue;
      }
      work_[column] += value;
      // Liu's elimination tree: a column with an entry in row k fills in all
      // its ancestors below k. The marks keep a path from being walked twice.
      for (int32_t j = column; mark_[j] != k; j = parent_[j]) {
        // The first row below column j with an entry in it is the parent of j.
        if (parent_[j] < 0) parent_[j] = static_cast<int32_t>(k);
        mark_[j] = static_cast<int32_t>(k);
        pattern.push_back(j);
      }
    }
    // A column may only be used when all columns left of it are done with the
    // row.
    std::sort(pattern.begin(), pattern.end());
    // A hermitian matrix has a real diagonal.
    auto left = std::real(pivot);
    for (int32_t j : pattern) {
      const T x = work_[j] / diagonal_[j];
      // Cleared as it is read, so the next row finds zeros without a pass over
      // all columns.
      work_[j] = T(0);
      for (const auto& [row, value] : f_.columns[j]) {
        work_[row] -= x * ConjugateValue(value);
      }
      left -= std::real(x * ConjugateValue(x));
      f_.columns[j].emplace_back(static_cast<int32_t>(k), x);
      out.Add(j, x);
    }
    if (left <= 0) return false;
    diagonal_[k] = std::sqrt(left);
    out.Add(static_cast<int32_t>(k), T(diagonal_[k]));
    return true;
  }

 private:
  using RealT = decltype(std::real(T()));
  Factor<T>& f_;
  const int64_t n_;
  std::vector<int32_t> parent_, mark_;
  std::vector<T> work_;
  std::vector<RealT> diagonal_;
};

template <typename T>
StatusOr<CsrPtr> FactorAll(const KernelContext& c, const CsrMatrix& m) {
  HR_ASSIGN_OR_RETURN(auto out, CsrBuilder<T>::Make(m.shape()));
  const int64_t n = m.rows();
  for (int64_t b = 0; b < m.batches(); ++b) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    HR_ASSIGN_OR_RETURN(const std::vector<int32_t> at,
                        Inverse(c.in<int32_t>(1) + b * n, n, b));
    Factor<T> f;
    PermuteLower(m, b, at, f);
    RowMaker<T> maker(f);
    for (int64_t k = 0; k < n; ++k) {
      if (!maker.Make(k, out)) {
        return InvalidArgument(
            "Sparse Cholesky factorization failed for batch index ", b,
            ". The input might not be valid.");
      }
      HR_RETURN_IF_ERROR(out.CloseRow());
    }
  }
  HR_ASSIGN_OR_RETURN(CsrPtr made, out.Finish());
  return made;
}

Status CheckCholesky(const CsrMatrix& m, const Tensor& order) {
  if (m.rows() != m.cols()) {
    return InvalidArgument("sparse matrix must be square; got: ", m.rows(),
                           " != ", m.cols());
  }
  if (m.rank() != order.rank() + 1) {
    return InvalidArgument(
        "sparse matrix must have the same rank as permutation; got: ", m.rank(),
        " != ", order.rank(), " + 1.");
  }
  if (order.rank() == 2 && order.dim(0) != m.batches()) {
    return InvalidArgument(
        "permutation must have the same batch size as sparse matrix; got: ",
        order.dim(0), " != ", m.batches());
  }
  const int64_t n = order.dim(order.rank() - 1);
  if (n == m.rows()) return OkStatus();
  return InvalidArgument(
      "permutation must have the same number of elements in each batch as the "
      "number of rows in sparse matrix; got: ",
      n, " != ", m.rows());
}

Status SparseCholesky(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  const DType want = c.op().type_attr("type");
  if (m->dtype() != want) {
    return InvalidArgument("Asked for a CSRSparseMatrix of type ",
                           DTypeName(want),
                           " but saw dtype: ", DTypeName(m->dtype()));
  }
  HR_RETURN_IF_ERROR(CheckCholesky(*m, c.input(1)));
  StatusOr<CsrPtr> made = CsrPtr();
  DispatchDType(want, CsrTypes{}, [&](auto tag) {
    made = FactorAll<typename decltype(tag)::type>(c, *m);
  });
  HR_RETURN_IF_ERROR(made.status());
  return SetCsrOutput(c, *std::move(made));
}

HR_OP(SparseMatrixSparseCholesky)
    .Input("input: variant")
    .Input("permutation: int32")
    .Output("output: variant")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("The lower Cholesky factor of a matrix in compressed rows, permuted.")
    .Shape(CholeskyRule)
    .Cpu(ComputeOwn<SparseCholesky>);

}  // namespace
}  // namespace headrace
