// SparseTensorSliceDataset: the rows of a sparse tensor.
#include "data/dataset_op.h"

namespace headrace {
namespace {

// Rows as sparse tensors: indices, values, shape.
class SparseSliceDataset : public Dataset {
 public:
  // Indices are sorted and within `shape`.
  SparseSliceDataset(ElementSpec spec, Tensor indices, Tensor values,
                     Tensor shape)
      : Dataset(std::move(spec)),
        indices_(std::move(indices)),
        values_(std::move(values)),
        shape_(std::move(shape)) {}
  StringView kind() const override { return "SparseTensorSlice"; }
  int64_t Count() const override { return shape_.data<int64_t>()[0]; }

  class Iterator : public IteratorOf<SparseSliceDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      const SparseSliceDataset& d = dataset();
      if (row_ >= d.Count()) {
        *end = true;
        return OkStatus();
      }
      const int64_t rank = d.indices_.dim(1), all = d.indices_.dim(0);
      const int64_t* places = d.indices_.data<int64_t>();
      int64_t stop = at_;
      while (stop < all && places[stop * rank] == row_) ++stop;
      HR_ASSIGN_OR_RETURN(
          Tensor indices,
          Tensor::Allocate(DType::kInt64, Shape{stop - at_, rank - 1}));
      for (int64_t i = at_; i < stop; ++i) {
        std::copy_n(places + i * rank + 1, rank - 1,
                    indices.data<int64_t>() + (i - at_) * (rank - 1));
      }
      *out = {std::move(indices), d.values_.Rows(at_, stop),
              d.shape_.Rows(1, rank)};
      at_ = stop;
      ++row_;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "i", row_);
      w.PutInt(prefix(), "next_index", at_);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(row_, r.GetCount(prefix(), "i"));
      HR_ASSIGN_OR_RETURN(at_, r.GetCount(prefix(), "next_index"));
      const bool fits =
          row_ <= dataset().Count() && at_ <= dataset().indices_.dim(0);
      return fits ? OkStatus() : DamagedState(prefix());
    }

   private:
    int64_t row_ = 0, at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Tensor indices_, values_, shape_;
};

// Every index within the shape, and rows in ascending order.
Status CheckSparse(const Tensor& indices, const Tensor& values,
                   const Tensor& shape) {
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices must be a matrix. Got: ",
                           indices.shape());
  }
  if (values.rank() != 1) {
    return InvalidArgument("Input values must be a vector. Got: ",
                           values.shape());
  }
  if (shape.rank() != 1) {
    return InvalidArgument("Input shape must be a vector. Got: ",
                           shape.shape());
  }
  const int64_t rank = shape.dim(0), count = indices.dim(0);
  if (rank < 1 || indices.dim(1) != rank || values.dim(0) != count) {
    return InvalidArgument("Indices ", indices.shape(), ", values ",
                           values.shape(), " and shape ", shape.shape(),
                           " do not fit together");
  }
  for (const int64_t d : shape.span<int64_t>()) {
    if (d < 0) return InvalidArgument("Sizes must not be negative, got ", d);
  }
  int64_t last = -1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* place = indices.data<int64_t>() + i * rank;
    for (int64_t d = 0; d < rank; ++d) {
      if (place[d] < 0 || place[d] >= shape.data<int64_t>()[d]) {
        return InvalidArgument("Index ", i, " is out of bounds: ", place[d],
                               " in dimension ", d);
      }
    }
    if (place[0] < last) {
      return Unimplemented(
          "The SparseTensor must be ordered in the batch "
          "dimension; handling arbitrarily ordered input is "
          "not currently supported.");
    }
    last = place[0];
  }
  return OkStatus();
}

Status MakeSparseSlices(KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  HR_RETURN_IF_ERROR(CheckSparse(indices, values, shape));
  const int64_t rank = shape.dim(0);
  ElementSpec spec{{DType::kInt64, values.dtype(), DType::kInt64},
                   {Shape{-1, rank - 1}, Shape{-1}, Shape{rank - 1}}};
  return SetDataset<SparseSliceDataset>(c, std::move(spec), indices, values,
                                        shape);
}

HR_OP(SparseTensorSliceDataset)
    .Input("indices: int64")
    .Input("values: Tvalues")
    .Input("dense_shape: int64")
    .Output("handle: variant")
    .Attr("Tvalues: type")
    .Doc("The rows of a sparse tensor, as sparse tensors.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeSparseSlices>);

}  // namespace
}  // namespace headrace
