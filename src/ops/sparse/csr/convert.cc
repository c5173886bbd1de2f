// CSR matrices from sparse tensors and from places of dense ones, and back.
#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "ops/sparse/csr/csr_matrix.h"

namespace headrace {
namespace {

// Row pointers and columns of places [n, rank], which lie within `shape`
// (else the text of `outside`) and whose rows do not fall.
struct CsrPlaces {
  Tensor batch_ptrs, row_ptrs, cols;
};

std::string PlaceText(const int64_t* row, int rank) {
  return absl::StrJoin(absl::MakeConstSpan(row, rank), ", ");
}

template <typename Outside>
StatusOr<CsrPlaces> CompressPlaces(const Tensor& indices, const Shape& shape,
                                   Outside outside) {
  // Pointers and columns of upstream's matrices are int32.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  HR_RETURN_IF_ERROR(CheckCsrShape(shape));
  const int rank = shape.rank();
  const int64_t n = indices.dim(0), rows = shape[rank - 2];
  const int64_t batches = rank == 3 ? shape[0] : 1;
  if (n > kMost) {
    return InvalidArgument("CSR SparseMatrix: more than 2^31-1 entries");
  }
  CsrPlaces out;
  HR_ASSIGN_OR_RETURN(out.batch_ptrs,
                      Tensor::Allocate(DType::kInt32, Shape{batches + 1}));
  HR_ASSIGN_OR_RETURN(
      out.row_ptrs,
      Tensor::Allocate(DType::kInt32, Shape{batches * (rows + 1)}));
  FillZero(out.batch_ptrs);
  FillZero(out.row_ptrs);
  int32_t* of_batch = out.batch_ptrs.data<int32_t>();
  int32_t* of_row = out.row_ptrs.data<int32_t>();
  HR_ASSIGN_OR_RETURN(out.cols, Tensor::Allocate(DType::kInt32, Shape{n}));
  int64_t before = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t* at = indices.data<int64_t>() + i * rank;
    for (int d = 0; d < rank; ++d) {
      if (at[d] < 0 || at[d] >= shape[d]) return outside(i, at);
    }
    if (at[rank - 1] > kMost) {
      return InvalidArgument("CSR SparseMatrix: column ", at[rank - 1],
                             " is above 2^31-1");
    }
    const int64_t b = rank == 3 ? at[0] : 0, row = b * rows + at[rank - 2];
    if (row < before) {
      return InvalidArgument("indices[", i, "] = [", PlaceText(at, rank),
                             "] is out of order: rows must not fall");
    }
    before = row;
    ++of_batch[b + 1];
    ++of_row[row + b + 1];
    out.cols.data<int32_t>()[i] = static_cast<int32_t>(at[rank - 1]);
  }
  for (int64_t b = 0; b < batches; ++b) {
    of_batch[b + 1] += of_batch[b];
    int32_t* p = of_row + b * (rows + 1);
    for (int64_t r = 0; r < rows; ++r) p[r + 1] += p[r];
  }
  return out;
}

Status FromSparseTensorRule(ShapeContext& c) {
  const char* names[] = {"indices", "values", "shape"};
  for (int i = 0; i < 3; ++i) {
    const int want = i == 0 ? 2 : 1, rank = c.input(i).rank();
    if (rank >= 0 && rank != want) {
      return InvalidArgument("Sparse ", names[i], " must be rank ", want,
                             " but is rank ", rank);
    }
  }
  const Shape &indices = c.input(0), &sizes = c.input(2);
  const int64_t rank = indices.known_rank() ? indices[1] : -1;
  const int64_t sized = sizes.known_rank() ? sizes[0] : -1;
  if (rank >= 0 && sized >= 0 && rank != sized) {
    return InvalidArgument("Index rank (", rank, ") and shape rank (", sized,
                           ") do not match");
  }
  const int64_t n = indices.known_rank() ? indices[0] : -1;
  const int64_t values = c.input(1).known_rank() ? c.input(1)[0] : -1;
  if (n >= 0 && values >= 0 && n != values) {
    return InvalidArgument("Number of elements in indices (", n,
                           ") and values (", values, ") do not match");
  }
  HR_ASSIGN_OR_RETURN(Shape shape, c.ShapeValue(2));
  if (!shape.known_rank() && rank >= 0) shape = Shape::UnknownOfRank(rank);
  SetCsrShape(c, c.input_dtype(1), std::move(shape));
  return OkStatus();
}

Status FromSparseTensor(KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1);
  const Shape shape(c.input(2).span<int64_t>());
  const int rank = shape.rank();
  if (rank != 2 && rank != 3) {
    return InvalidArgument(
        "SparseTensor must have rank 2 or 3; but indices has rank: ", rank);
  }
  HR_ASSIGN_OR_RETURN(
      CsrPlaces p,
      CompressPlaces(indices, shape, [&](int64_t i, const int64_t* at) {
        return InvalidArgument("Sparse index tuple indices[", i, ", :] = [",
                               PlaceText(at, rank), "] is out of bounds");
      }));
  HR_ASSIGN_OR_RETURN(
      CsrPtr m, CsrMatrix::Make(CsrDenseShape(shape), p.batch_ptrs, p.row_ptrs,
                                p.cols, values));
  return SetCsrOutput(c, std::move(m));
}

Status FromSparseTensorGradient(GradientContext& g) {
  Value dm = g.grad();
  if (!g.ok()) return g.status();
  const CsrEntries places{g.input(0), Value(), g.input(2)};
  g.set(1, ValuesAt(g, places, dm, g.input(1).dtype()));
  return g.status();
}

HR_OP(SparseTensorToCSRSparseMatrix)
    .Input("indices: int64")
    .Input("values: T")
    .Input("dense_shape: int64")
    .Output("sparse_matrix: variant")
    .Attr("T: {float, double, complex64, complex128}")
    .Doc("A matrix in compressed rows, or a batch, of a sparse tensor.")
    .Shape(FromSparseTensorRule)
    .Gradient(FromSparseTensorGradient)
    .GradientSkips({1}, {0})
    .Cpu(ComputeOwn<FromSparseTensor>);

Status ToSparseTensorRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(const Shape shape, CsrShapeInput(c, 0));
  c.set_output(0, Shape{-1, shape.rank()});
  c.set_output(1, Shape{-1});
  c.set_output(2, Shape{shape.rank()});
  return OkStatus();
}

Status ToSparseTensor(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  const DType want = c.op().type_attr("type");
  if (m->dtype() != want) {
    return InvalidArgument("Expected a CSRSparseMatrix of type ",
                           DTypeName(want),
                           " but saw type: ", DTypeName(m->dtype()));
  }
  const int rank = m->rank();
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{m->entries(), rank}));
  int64_t* at = c.out<int64_t>(0);
  for (int64_t b = 0; b < m->batches(); ++b) {
    const int32_t *rows = m->row_ptrs(b), *cols = m->col_inds(b);
    for (int64_t r = 0; r < m->rows(); ++r) {
      for (int32_t i = rows[r]; i < rows[r + 1]; ++i) {
        if (rank == 3) *at++ = b;
        *at++ = r;
        *at++ = cols[i];
      }
    }
  }
  c.set_output(1, m->values());
  c.set_output(2, m->dense_shape());
  return OkStatus();
}

Status ToSparseTensorGradient(GradientContext& g) {
  Value dy = g.grad(1);
  if (!g.ok() || !dy) return g.status();
  g.set(0, g("SparseTensorToCSRSparseMatrix", {g.output(0), dy, g.output(2)}));
  return g.status();
}

HR_OP(CSRSparseMatrixToSparseTensor)
    .Input("sparse_matrix: variant")
    .Output("indices: int64")
    .Output("values: type")
    .Output("dense_shape: int64")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("The entries of a matrix in compressed rows as a sparse tensor.")
    .Shape(ToSparseTensorRule)
    .Gradient(ToSparseTensorGradient)
    .GradientSkips({0}, {1})
    .Cpu(ComputeOwn<ToSparseTensor>);

Status CsrToDenseRule(ShapeContext& c) {
  HR_ASSIGN_OR_RETURN(Shape shape, CsrShapeInput(c, 0));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

template <typename T>
void SpreadEntries(const CsrMatrix& m, T* y) {
  for (int64_t b = 0; b < m.batches(); ++b) {
    const int32_t *rows = m.row_ptrs(b), *cols = m.col_inds(b);
    const T* x = m.values<T>(b);
    for (int64_t r = 0; r < m.rows(); ++r, y += m.cols()) {
      for (int32_t i = rows[r]; i < rows[r + 1]; ++i) y[cols[i]] = x[i];
    }
  }
}

Status CsrToDense(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const CsrMatrix* m, CsrInput(c, 0));
  const DType want = c.op().type_attr("type");
  if (m->dtype() != want) {
    return InvalidArgument("Asked for a CSRSparseMatrix of type ",
                           DTypeName(want),
                           " but saw dtype: ", DTypeName(m->dtype()));
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, m->shape()));
  FillZero(c.output(0));
  DispatchDType(want, CsrTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SpreadEntries(*m, c.out<T>(0));
  });
  return OkStatus();
}

Status CsrToDenseGradient(GradientContext& g) {
  Value dy = g.grad();
  const CsrEntries e = EntriesOf(g, g.input(0), g.op().type_attr("type"));
  if (!g.ok()) return g.status();
  Value values = g("GatherNd", {dy, e.indices});
  g.set(0, g("SparseTensorToCSRSparseMatrix", {e.indices, values, e.sizes}));
  return g.status();
}

HR_OP(CSRSparseMatrixToDense)
    .Input("sparse_input: variant")
    .Output("dense_output: type")
    .Attr("type: {float, double, complex64, complex128}")
    .Doc("A matrix in compressed rows as a dense tensor.")
    .Shape(CsrToDenseRule)
    .Gradient(CsrToDenseGradient)
    .GradientSkips({}, {0})
    .Cpu(ComputeOwn<CsrToDense>);

Status FromDenseRule(ShapeContext& c) {
  SetCsrShape(c, c.input_dtype(0), c.input(0));
  return OkStatus();
}

template <typename T>
void PickEntries(const Tensor& indices, const Tensor& dense, Tensor& values) {
  const int rank = dense.rank();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t* at = indices.data<int64_t>() + i * rank;
    int64_t from = 0;
    for (int d = 0; d < rank; ++d) from = from * dense.dim(d) + at[d];
    values.data<T>()[i] = dense.data<T>()[from];
  }
}

Status FromDense(KernelContext& c) {
  const Tensor &dense = c.input(0), &indices = c.input(1);
  const int rank = dense.rank();
  if (rank != 2 && rank != 3) {
    return InvalidArgument("params must have rank == 2 or 3; but saw shape: ",
                           dense.shape());
  }
  if (indices.rank() != 2) {
    return InvalidArgument("indices must be a matrix, but saw shape: ",
                           indices.shape());
  }
  if (indices.dim(1) != rank) {
    return InvalidArgument(
        "indices.shape[1] must be equal to the rank of params, but saw: ",
        indices.dim(1), " vs. ", rank);
  }
  HR_ASSIGN_OR_RETURN(
      CsrPlaces p,
      CompressPlaces(indices, dense.shape(), [&](int64_t i, const int64_t* at) {
        return InvalidArgument("indices[", i, "] = [", PlaceText(at, rank),
                               "] does not index into param shape ",
                               dense.shape());
      }));
  HR_ASSIGN_OR_RETURN(Tensor values,
                      Tensor::Allocate(dense.dtype(), Shape{indices.dim(0)}));
  DispatchDType(dense.dtype(), CsrTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    PickEntries<T>(indices, dense, values);
  });
  HR_ASSIGN_OR_RETURN(
      CsrPtr m, CsrMatrix::Make(CsrDenseShape(dense.shape()), p.batch_ptrs,
                                p.row_ptrs, p.cols, std::move(values)));
  return SetCsrOutput(c, std::move(m));
}

Status FromDenseGradient(GradientContext& g) {
  const AttrMap type{{"type", g.input(0).dtype()}};
  Value all = g("CSRSparseMatrixToDense", {g.grad()}, type);
  Value named = g("DenseToCSRSparseMatrix", {all, g.input(1)});
  g.set(0, g("CSRSparseMatrixToDense", {named}, type));
  return g.status();
}

HR_OP(DenseToCSRSparseMatrix)
    .Input("dense_input: T")
    .Input("indices: int64")
    .Output("sparse_output: variant")
    .Attr("T: {float, double, complex64, complex128}")
    .Doc("The named places of a dense tensor as a matrix in compressed rows.")
    .Shape(FromDenseRule)
    .Gradient(FromDenseGradient)
    .GradientSkips({0}, {0})
    .Cpu(ComputeOwn<FromDense>);

}  // namespace
}  // namespace headrace
