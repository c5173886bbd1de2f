// BatchDatasetV2, ParallelBatchDataset: consecutive elements stacked.
#include "data/transform/batch.h"

#include "data/dataset_op.h"

namespace headrace {
namespace {

class BatchDataset : public InputDataset {
 public:
  BatchDataset(ElementSpec spec, DatasetPtr input, int64_t size, bool drop)
      : InputDataset(std::move(spec), std::move(input)),
        size_(size),
        drop_remainder_(drop) {}
  StringView kind() const override { return "BatchV2"; }
  int64_t Cardinality() const override {
    const int64_t n = input().Cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ != 0 && !drop_remainder_);
  }

  class Iterator : public InputIterator<BatchDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!input_) {
        *end = true;
        return OkStatus();
      }
      int64_t count = 0;
      bool done = false;
      const int64_t size = dataset().size_;
      HR_RETURN_IF_ERROR(input_->NextRows(c, size, out, &count, &done));
      if (!done) HR_RETURN_IF_ERROR(Gather(c, size, out, &count));
      if (count < size) input_.reset();
      *end = count == 0 || (count < size && dataset().drop_remainder_);
      return OkStatus();
    }

   private:
    Status Gather(PullContext& c, int64_t size, Element* out, int64_t* count) {
      size_t n = 0;
      for (; n < static_cast<size_t>(size); ++n) {
        if (elements_.size() == n) elements_.emplace_back();
        bool end = false;
        HR_RETURN_IF_ERROR(input_->Next(c, &elements_[n], &end));
        if (end) break;
      }
      *count = static_cast<int64_t>(n);
      if (n == 0 || (*count < size && dataset().drop_remainder_)) {
        return OkStatus();
      }
      Status s = StackElements(absl::MakeSpan(elements_).first(n), out);
      for (size_t i = 0; i < n; ++i) elements_[i].clear();
      return s;
    }

    std::vector<Element> elements_;  // kept for their memory
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;
  const bool drop_remainder_;
};

template <int drop_input>
Status MakeBatch(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t size, IntInput(c, 1, "batch_size"));
  bool drop = false;
  if (drop_input > 0) {
    HR_ASSIGN_OR_RETURN(drop, BoolInput(c, drop_input, "drop_remainder"));
  }
  HR_ASSIGN_OR_RETURN(DatasetPtr batched,
                      Batched(std::move(spec), std::move(input), size, drop));
  c.set_output(0, DatasetTensor(std::move(batched)));
  return OkStatus();
}

HR_OP(BatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Output("handle: variant") HR_DATASET_SPEC.Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked; the last batch may be smaller.")
        HR_DATASET_END(MakeBatch<0>);

HR_OP(BatchDatasetV2)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("parallel_copy: bool = false") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked.") HR_DATASET_END(MakeBatch<2>);

HR_OP(ParallelBatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("num_parallel_calls: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("parallel_copy: bool = false") HR_DATASET_SPEC
    .Attr("deterministic: string = 'default'")
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked.") HR_DATASET_END(MakeBatch<3>);

}  // namespace

StatusOr<DatasetPtr> Batched(ElementSpec spec, DatasetPtr input, int64_t size,
                             bool drop_remainder) {
  if (size <= 0) {
    return InvalidArgument("Batch size must be greater than zero.");
  }
  return DatasetPtr(std::make_shared<const BatchDataset>(
      std::move(spec), std::move(input), size, drop_remainder));
}

}  // namespace headrace
