// DenseToSparseBatchDataset: consecutive elements of any sizes as one sparse
// tensor.
#include <cstring>

#include "data/dataset_op.h"
#include "op/op_like.h"
#include "tensor/tensor_variant.h"

namespace headrace {
namespace {

class SparseBatchDataset : public InputDataset {
 public:
  // `row`: the shape of one element in the batch, -1: that of the longest.
  SparseBatchDataset(ElementSpec spec, DatasetPtr input, int64_t size,
                     Shape row)
      : InputDataset(std::move(spec), std::move(input)),
        size_(size),
        row_(std::move(row)) {}
  StringView kind() const override { return "DenseToSparseBatch"; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    return n < 0 ? n : n / size_ + (n % size_ != 0);
  }

  class Iterator : public KeptInputIterator<SparseBatchDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      std::vector<Tensor> rows;
      const Shape& row = dataset().row_;
      std::vector<int64_t> shape(row.dims().begin(), row.dims().end());
      int64_t total = 0;
      while (static_cast<int64_t>(rows.size()) < dataset().size_) {
        Element element;
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, &element, end));
        if (*end) break;
        HR_RETURN_IF_ERROR(CheckRow(element[0].shape(), &shape));
        total += element[0].num_elements();
        rows.push_back(std::move(element[0]));
      }
      *end = rows.empty();
      return *end ? OkStatus() : Gather(rows, shape, total, out);
    }

   private:
    // That an element fits the row shape; *shape grows where it is open.
    Status CheckRow(const Shape& s, std::vector<int64_t>* shape) const {
      const Shape& row = dataset().row_;
      if (s.rank() != row.rank()) {
        return InvalidArgument("Input element had shape (", s,
                               ") that is incompatible with the row shape (",
                               row, ").");
      }
      for (int d = 0; d < s.rank(); ++d) {
        if (row.dim(d) == -1) {
          (*shape)[d] = std::max((*shape)[d], s.dim(d));
        } else if (s.dim(d) > row.dim(d)) {
          return DataLoss("Input element had shape (", s,
                          ") that is larger than the row shape (", row, ").");
        }
      }
      return OkStatus();
    }

    static Status Gather(const std::vector<Tensor>& rows,
                         const std::vector<int64_t>& shape, int64_t total,
                         Element* out) {
      const int64_t rank = static_cast<int64_t>(shape.size());
      HR_ASSIGN_OR_RETURN(
          Tensor indices,
          Tensor::Allocate(DType::kInt64, Shape{total, rank + 1}));
      HR_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Allocate(rows[0].dtype(), Shape{total}));
      HR_ASSIGN_OR_RETURN(Tensor sizes,
                          Tensor::Allocate(DType::kInt64, Shape{rank + 1}));
      int64_t* at = indices.data<int64_t>();
      int64_t done = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        const int64_t n = rows[r].num_elements();
        Tensor part = values.Rows(done, done + n);
        CopyElements(rows[r], part);
        PutIndices(static_cast<int64_t>(r), rows[r].shape(), &at);
        done += n;
      }
      sizes.data<int64_t>()[0] = static_cast<int64_t>(rows.size());
      for (int64_t d = 0; d < rank; ++d) {
        sizes.data<int64_t>()[d + 1] = std::max<int64_t>(shape[d], 0);
      }
      HR_ASSIGN_OR_RETURN(Tensor parts,
                          Tensor::Allocate(DType::kVariant, Shape{3}));
      Variant* v = parts.data<Variant>();
      v[0] = TensorInVariant(std::move(indices));
      v[1] = TensorInVariant(std::move(values));
      v[2] = TensorInVariant(std::move(sizes));
      out->assign(1, std::move(parts));
      return OkStatus();
    }

    // (row, i, j, ...) of every element of a tensor of shape `s`.
    static void PutIndices(int64_t row, const Shape& s, int64_t** at) {
      std::vector<int64_t> index(s.rank(), 0);
      for (int64_t i = s.num_elements(); i > 0; --i) {
        *(*at)++ = row;
        for (const int64_t d : index) *(*at)++ = d;
        for (int d = s.rank() - 1; d >= 0 && ++index[d] == s.dim(d); --d) {
          index[d] = 0;
        }
      }
    }
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;
  const Shape row_;
};

Status MakeSparseBatch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  if (input->width() != 1) {
    return InvalidArgument(
        "DenseToSparseBatchDataset only supports inputs with a single "
        "component.");
  }
  if (!IsPlain(input->spec().types[0]) &&
      input->spec().types[0] != DType::kString) {
    return InvalidArgument("a sparse batch of elements of type ",
                           DTypeName(input->spec().types[0]));
  }
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "batch_size"));
  if (size <= 0) {
    return InvalidArgument("Batch size must be greater than zero.");
  }
  const Tensor& row_shape = c.input(2);
  if (row_shape.rank() != 1) {
    return InvalidArgument("row_shape must be a vector");
  }
  HR_ASSIGN_OR_RETURN(Shape row, Shape::Make(row_shape.span<int64_t>(),
                                             /*allow_unknown=*/true));
  return SetDataset<SparseBatchDataset>(c, std::move(spec), std::move(input),
                                        size, std::move(row));
}

HR_OP(DenseToSparseBatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("row_shape: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("Consecutive elements of any sizes as one sparse tensor.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSparseBatch>);

[[maybe_unused]] const bool kExperimentalDenseToSparseBatch =
    RegisterLike("ExperimentalDenseToSparseBatchDataset",
                 "DenseToSparseBatchDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
