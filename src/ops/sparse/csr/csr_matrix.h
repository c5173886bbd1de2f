// The value that a variant holds of sparse matrices in compressed rows (CSR).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "op/op.h"
#include "tensor/variant.h"

namespace headrace {

using CsrTypes = TypeList<float, double, complex64, complex128>;

// One matrix, or a batch of matrices of one size, each with its own entries.
// Rows lie in order; columns within a row may come in any order, and more than
// once. Immutable once made, so copies share the buffers.
class CsrMatrix : public VariantValue {
 public:
  static constexpr char kTypeName[] = "tensorflow::CSRSparseMatrix";

  // dense_shape: int64 [2] or [3]; batch_ptrs: int32 [batches + 1], where the
  // entries of each matrix begin; row_ptrs: int32 [batches * (rows + 1)], each
  // matrix counting its entries from 0; col_inds: int32 [entries]; values
  // [entries]. InvalidArgument unless all of it fits together.
  static StatusOr<std::shared_ptr<CsrMatrix>> Make(Tensor dense_shape,
                                                   Tensor batch_ptrs,
                                                   Tensor row_ptrs,
                                                   Tensor col_inds,
                                                   Tensor values);

  StringView type_name() const override { return kTypeName; }
  std::string DebugString() const override;
  // The same places with zeros.
  StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const override;
  // The same places with other values, [entries] of any dtype.
  std::shared_ptr<CsrMatrix> WithValues(Tensor values) const;

  DType dtype() const { return values_.dtype(); }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t batches() const { return rank() == 3 ? shape_[0] : 1; }
  int64_t rows() const { return shape_[rank() - 2]; }
  int64_t cols() const { return shape_[rank() - 1]; }
  // Entries of all matrices; of matrix b; and where those begin.
  int64_t entries() const { return col_inds_.num_elements(); }
  int64_t entries(int64_t b) const { return begin(b + 1) - begin(b); }
  int64_t begin(int64_t b) const { return batch_ptrs_.data<int32_t>()[b]; }
  // Of matrix b: rows() + 1 numbers, and entries(b) columns.
  const int32_t* row_ptrs(int64_t b) const {
    return row_ptrs_.data<int32_t>() + b * (rows() + 1);
  }
  const int32_t* col_inds(int64_t b) const {
    return col_inds_.data<int32_t>() + begin(b);
  }
  template <typename T>
  const T* values(int64_t b) const {
    return values_.data<T>() + begin(b);
  }

  const Tensor& dense_shape() const { return dense_shape_; }
  const Tensor& batch_ptrs() const { return batch_ptrs_; }
  const Tensor& row_ptrs() const { return row_ptrs_; }
  const Tensor& col_inds() const { return col_inds_; }
  const Tensor& values() const { return values_; }

 private:
  CsrMatrix() = default;

  Tensor dense_shape_, batch_ptrs_, row_ptrs_, col_inds_, values_;
  Shape shape_;
};

using CsrPtr = std::shared_ptr<const CsrMatrix>;

// A matrix in the making whose entries are known only row by row. Rows are
// closed in order, batch by batch.
template <typename T>
class CsrBuilder {
 public:
  // InvalidArgument when the row pointers would not be numbered by int32.
  static StatusOr<CsrBuilder> Make(const Shape& shape);
  void Add(int32_t column, T value) {
    cols_.push_back(column);
    values_.push_back(std::move(value));
  }
  // Ends the row; InvalidArgument when int32 cannot count the entries.
  Status CloseRow();
  // After every row of every matrix was closed.
  StatusOr<std::shared_ptr<CsrMatrix>> Finish();

 private:
  Shape shape_;
  int64_t rows_ = 0, row_ = 0;
  std::vector<int32_t> batch_ptrs_{0}, row_ptrs_, cols_;
  std::vector<T> values_;
};

// The sizes as an int64 vector.
Tensor CsrDenseShape(const Shape& shape);
// Two or three sizes, none negative, whose row pointers int32 can number.
Status CheckCsrShape(const Shape& shape);
// No entries.
StatusOr<std::shared_ptr<CsrMatrix>> ZeroCsr(DType dtype, const Shape& shape);

// Rows and columns of every matrix exchanged, columns in order; values
// conjugated if asked for.
StatusOr<std::shared_ptr<CsrMatrix>> TransposeCsr(const CsrMatrix& a,
                                                  bool conjugate);
// alpha * a + beta * b of one dtype and shape; scalars of that dtype. Places
// of either are places of the sum, also where the values cancel.
StatusOr<std::shared_ptr<CsrMatrix>> AddCsr(const CsrMatrix& a,
                                            const CsrMatrix& b,
                                            const Tensor& alpha,
                                            const Tensor& beta);

// --- For kernels.
// Input i, a scalar variant. InvalidArgument when it is anything but that.
StatusOr<const CsrMatrix*> CsrInput(const KernelContext& c, int i);
// InvalidArgument unless `a` is of that dtype; `name` is its name in the text.
Status CheckCsrType(const CsrMatrix& a, DType want, StringView name);
// Output 0 is a scalar variant that holds `m`.
Status SetCsrOutput(const KernelContext& c, CsrPtr m);

template <typename T>
T ConjugateValue(const T& x) {
  if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// --- For shape rules.
// What is known of the matrix behind variant input i: rank 2 or 3 or unknown.
StatusOr<Shape> CsrShapeInput(const ShapeContext& c, int i);
// Output 0 is a scalar variant with a matrix of that shape and dtype.
void SetCsrShape(ShapeContext& c, DType dtype, Shape shape);
// The last two sizes exchanged.
Shape SwapMatrix(Shape s);
// The shape of a product of matrices; the last two sizes of `a` and `b` are
// already as they are multiplied.
StatusOr<Shape> CsrProductShape(const Shape& a, const Shape& b);
// InvalidArgument when a side is both to be transposed and adjoint.
Status CheckTransposeFlags(const ResolvedOp& op);

// --- For gradients.
// A matrix' entries: indices [entries, rank], values, sizes.
struct CsrEntries {
  Value indices, values, sizes;
};
CsrEntries EntriesOf(OpScope& s, const Value& matrix, DType dtype);
// The values that `matrix` has at `places`, zeros where it has no entry: a
// gradient may have other places than what it is the gradient of.
Value ValuesAt(OpScope& s, const CsrEntries& places, const Value& matrix,
               DType dtype);

}  // namespace headrace
