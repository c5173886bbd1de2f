#include "ops/sparse/csr/csr_matrix.h"

#include <limits>

namespace headrace {
namespace {

constexpr int64_t kMostCounted = std::numeric_limits<int32_t>::max();

bool IsVectorOf(const Tensor& t, DType dtype) {
  return t.dtype() == dtype && t.rank() == 1;
}

// `count` numbers at `p`, not falling, from 0 to `last`.
bool Counts(const int32_t* p, int64_t count, int64_t last) {
  if (count < 1 || p[0] != 0 || p[count - 1] != last) return false;
  for (int64_t i = 1; i < count; ++i) {
    if (p[i] < p[i - 1]) return false;
  }
  return true;
}

Status CheckColumns(const Tensor& cols, int64_t size) {
  const int32_t* p = cols.data<int32_t>();
  for (int64_t i = 0; i < cols.num_elements(); ++i) {
    if (p[i] < 0 || p[i] >= size) {
      return InvalidArgument("CSR SparseMatrix: column ", p[i], " of entry ", i,
                             " is not in [0, ", size, ")");
    }
  }
  return OkStatus();
}

Status CheckEntries(const Tensor& cols, const Tensor& values) {
  const bool known = DispatchDType(values.dtype(), CsrTypes{}, [](auto) {});
  if (known && IsVectorOf(cols, DType::kInt32) && values.rank() == 1 &&
      values.num_elements() == cols.num_elements()) {
    return OkStatus();
  }
  return InvalidArgument("CSR SparseMatrix: columns ", cols.Describe(),
                         " do not fit values ", values.Describe());
}

Status CheckPointers(const Shape& shape, const Tensor& of_batch,
                     const Tensor& of_row, int64_t entries) {
  const int64_t batches = shape.rank() == 3 ? shape[0] : 1;
  const int64_t rows = shape[shape.rank() - 2];
  if (!IsVectorOf(of_batch, DType::kInt32) ||
      of_batch.num_elements() != batches + 1 ||
      !Counts(of_batch.data<int32_t>(), batches + 1, entries)) {
    return InvalidArgument("CSR SparseMatrix: batch_pointers do not divide ",
                           entries, " entries among ", batches, " matrices");
  }
  if (!IsVectorOf(of_row, DType::kInt32) ||
      of_row.num_elements() != batches * (rows + 1)) {
    return InvalidArgument("CSR SparseMatrix: row_pointers ", of_row.Describe(),
                           ", expected ", batches * (rows + 1), " of int32");
  }
  const int32_t* begin = of_batch.data<int32_t>();
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t own = begin[b + 1] - begin[b];
    if (!Counts(of_row.data<int32_t>() + b * (rows + 1), rows + 1, own)) {
      return InvalidArgument("CSR SparseMatrix: row_pointers of matrix ", b,
                             " do not divide its ", own, " entries");
    }
  }
  return OkStatus();
}

}  // namespace

Tensor CsrDenseShape(const Shape& shape) { return Tensor::Vector(shape); }

Status CheckCsrShape(const Shape& shape) {
  const int rank = shape.rank();
  if (rank != 2 && rank != 3) {
    return InvalidArgument(
        "CSR SparseMatrix must have rank 2 or 3; but dense_shape has rank: ",
        rank);
  }
  HR_RETURN_IF_ERROR(Shape::Make(shape.dims()).status());
  const int64_t batches = rank == 3 ? shape[0] : 1, rows = shape[rank - 2];
  int64_t pointers = 0;
  const bool counted = rows < std::numeric_limits<int64_t>::max() &&
                       MultiplyChecked(batches, rows + 1, &pointers);
  if (!counted || pointers > kMostCounted || batches >= kMostCounted) {
    return InvalidArgument(
        "The csr row index size, computed based on the dense_shape, must be "
        "<= Int32Max, but is too large. Current value is ",
        counted ? std::to_string(pointers) : "above 2^63");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<CsrMatrix>> CsrMatrix::Make(Tensor dense_shape,
                                                     Tensor batch_ptrs,
                                                     Tensor row_ptrs,
                                                     Tensor col_inds,
                                                     Tensor values) {
  if (!IsVectorOf(dense_shape, DType::kInt64)) {
    return InvalidArgument(
        "CSR SparseMatrix: dense_shape must be an int64 vector, got ",
        dense_shape.Describe());
  }
  const Shape shape(dense_shape.span<int64_t>());
  HR_RETURN_IF_ERROR(CheckCsrShape(shape));
  HR_RETURN_IF_ERROR(CheckEntries(col_inds, values));
  HR_RETURN_IF_ERROR(
      CheckPointers(shape, batch_ptrs, row_ptrs, values.num_elements()));
  HR_RETURN_IF_ERROR(CheckColumns(col_inds, shape[shape.rank() - 1]));
  auto m = std::shared_ptr<CsrMatrix>(new CsrMatrix);
  m->dense_shape_ = std::move(dense_shape);
  m->batch_ptrs_ = std::move(batch_ptrs);
  m->row_ptrs_ = std::move(row_ptrs);
  m->col_inds_ = std::move(col_inds);
  m->values_ = std::move(values);
  m->shape_ = shape;
  return m;
}

std::string CsrMatrix::DebugString() const {
  return absl::StrCat("CSRSparseMatrix(", DTypeName(dtype()), shape_.ToString(),
                      ", ", entries(), " entries)");
}

std::shared_ptr<CsrMatrix> CsrMatrix::WithValues(Tensor values) const {
  auto m = std::shared_ptr<CsrMatrix>(new CsrMatrix(*this));
  m->values_ = std::move(values);
  return m;
}

StatusOr<std::shared_ptr<const VariantValue>> CsrMatrix::ZerosLike() const {
  HR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(dtype(), values_.shape()));
  FillZero(zeros);
  return std::shared_ptr<const VariantValue>(WithValues(std::move(zeros)));
}

StatusOr<std::shared_ptr<CsrMatrix>> ZeroCsr(DType dtype, const Shape& shape) {
  HR_RETURN_IF_ERROR(CheckCsrShape(shape));
  const int64_t batches = shape.rank() == 3 ? shape[0] : 1;
  auto zeros = [](DType type, int64_t n) -> StatusOr<Tensor> {
    HR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(type, Shape{n}));
    FillZero(t);
    return t;
  };
  HR_ASSIGN_OR_RETURN(Tensor of_batch, zeros(DType::kInt32, batches + 1));
  HR_ASSIGN_OR_RETURN(
      Tensor of_row,
      zeros(DType::kInt32, batches * (shape[shape.rank() - 2] + 1)));
  HR_ASSIGN_OR_RETURN(Tensor cols, zeros(DType::kInt32, 0));
  HR_ASSIGN_OR_RETURN(Tensor values, zeros(dtype, 0));
  return CsrMatrix::Make(CsrDenseShape(shape), std::move(of_batch),
                         std::move(of_row), std::move(cols), std::move(values));
}

template <typename T>
StatusOr<CsrBuilder<T>> CsrBuilder<T>::Make(const Shape& shape) {
  HR_RETURN_IF_ERROR(CheckCsrShape(shape));
  CsrBuilder<T> b;
  b.shape_ = shape;
  b.rows_ = shape[shape.rank() - 2];
  if (b.rows_ == 0) {
    // No row will ever be closed.
    const int64_t batches = shape.rank() == 3 ? shape[0] : 1;
    b.batch_ptrs_.resize(batches + 1);
    b.row_ptrs_.resize(batches);
  }
  return b;
}

template <typename T>
Status CsrBuilder<T>::CloseRow() {
  const int64_t n = static_cast<int64_t>(cols_.size());
  if (n > kMostCounted) {
    return InvalidArgument("CSR SparseMatrix: more than 2^31-1 entries");
  }
  if (row_ == 0) row_ptrs_.push_back(0);
  row_ptrs_.push_back(static_cast<int32_t>(n) - batch_ptrs_.back());
  if (++row_ == rows_) {
    batch_ptrs_.push_back(static_cast<int32_t>(n));
    row_ = 0;
  }
  return OkStatus();
}

template <typename T>
StatusOr<std::shared_ptr<CsrMatrix>> CsrBuilder<T>::Finish() {
  return CsrMatrix::Make(
      CsrDenseShape(shape_), Tensor::Vector<int32_t>(batch_ptrs_),
      Tensor::Vector<int32_t>(row_ptrs_), Tensor::Vector<int32_t>(cols_),
      Tensor::Vector<T>(values_));
}

template class CsrBuilder<float>;
template class CsrBuilder<double>;
template class CsrBuilder<complex64>;
template class CsrBuilder<complex128>;

StatusOr<const CsrMatrix*> CsrInput(const KernelContext& c, int i) {
  const Tensor& t = c.input(i);
  if (t.rank() != 0) {
    return InvalidArgument("Invalid input matrix: Shape must be rank 0 but is ",
                           "rank ", t.rank());
  }
  const auto* m = t.scalar<Variant>().get<CsrMatrix>();
  if (m == nullptr) {
    return InvalidArgument("Could not retrieve Variant input ", i);
  }
  return m;
}

Status CheckCsrType(const CsrMatrix& a, DType want, StringView name) {
  if (a.dtype() == want) return OkStatus();
  return InvalidArgument("dtype of ", name,
                         " is not equal to 'type': ", DTypeName(a.dtype()),
                         " vs. ", DTypeName(want));
}

Status SetCsrOutput(const KernelContext& c, CsrPtr m) {
  c.set_output(0, Tensor::Scalar<Variant>(Variant(std::move(m))));
  return OkStatus();
}

}  // namespace headrace
