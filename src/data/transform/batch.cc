// BatchDatasetV2, ParallelBatchDataset: consecutive elements stacked.
#include "data/transform/batch.h"

#include <deque>

#include "data/transform/batch_results.h"

namespace headrace {
namespace {

class BatchDataset : public InputDataset {
 public:
  // `parallel`: goes by a parallel batch's name.
  BatchDataset(ElementSpec spec, DatasetPtr input, int64_t size, bool drop,
               bool parallel)
      : InputDataset(std::move(spec), std::move(input)),
        size_(size),
        drop_remainder_(drop),
        parallel_(parallel) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
    return ReaderOf(
        [from = std::move(from), size = size_, count = input().Cardinality()](
            PullContext& context, int64_t i, Element* out) {
          // The last one may be short.
          std::vector<Element> elements(std::min(size, count - i * size));
          for (size_t k = 0; k < elements.size(); ++k) {
            HR_RETURN_IF_ERROR(from->Read(
                context, i * size + static_cast<int64_t>(k), &elements[k]));
          }
          return StackElements(elements, out);
        });
  }
  StringView kind() const override {
    return parallel_ ? "ParallelBatch" : "BatchV2";
  }
  // A map's batches are one dataset with the map.
  DatasetPtr StandIn(const PullContext& c) const override {
    if (!c.options.fuse_batches || parallel_) return nullptr;
    DatasetPtr from = inputs()[0];
    // What stands in for the input may be a map, too.
    while (from) {
      auto map = std::dynamic_pointer_cast<const MappedDataset>(from);
      if (map && !map->StandsAside(c)) {
        return MapAndBatch(spec(), std::move(map), size_, drop_remainder_);
      }
      from = from->StandIn(c);
    }
    return nullptr;
  }
  int64_t batch_size() const override { return size_; }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (n < 0) return n;
    return n / size_ + (n % size_ != 0 && !drop_remainder_);
  }

  class Iterator : public InputIterator<BatchDataset> {
   public:
    using InputIterator::InputIterator;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!ready_.empty()) [[unlikely]] {
        Pulled p = std::move(ready_.front());
        ready_.pop_front();
        *out = std::move(p.element);
        return p.status;
      }
      if (!input_ || ended_) {
        *end = true;
        return OkStatus();
      }
      int64_t count = 0;
      bool done = false;
      const int64_t size = dataset().size_;
      HR_RETURN_IF_ERROR(input_->NextRows(c, size, out, &count, &done));
      if (!done) HR_RETURN_IF_ERROR(Gather(c, size, out, &count));
      ended_ = count < size;
      // A parallel batch keeps its input, which its state holds even at the
      // end.
      if (ended_ && !dataset().parallel_) input_.reset();
      *end = count == 0 || (count < size && dataset().drop_remainder_);
      return OkStatus();
    }

    Status Save(PullContext& c, StateWriter& w) override {
      if (!dataset().parallel_) return InputIterator::Save(c, w);
      HR_RETURN_IF_ERROR(PutBatchResults(w, prefix(), {}));
      return input_->Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      ended_ = false;
      ready_.clear();
      if (!dataset().parallel_) return InputIterator::Restore(c, r);
      HR_ASSIGN_OR_RETURN(std::vector<BatchResult> results,
                          GetBatchResults(r, prefix(), dataset().spec()));
      for (BatchResult& b : results) {
        if (b.status.ok() && (b.count == 0 || (b.count < dataset().size_ &&
                                               dataset().drop_remainder_))) {
          continue;
        }
        // Upstream makes a batch's tensor before it knows how many elements
        // come.
        for (Tensor& t : b.rows) t = t.Rows(0, b.count);
        if (b.status.ok()) {
          HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), b.rows));
        }
        ready_.push_back({std::move(b.rows), std::move(b.status)});
      }
      return input_->Restore(c, r);
    }

   private:
    Status Gather(PullContext& c, int64_t size, Element* out, int64_t* count) {
      size_t n = 0;
      for (; n < static_cast<size_t>(size); ++n) {
        if (elements_.size() == n) elements_.emplace_back();
        bool end = false;
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(input_->Next(c, &elements_[n], &end));
        if (end) break;
      }
      *count = static_cast<int64_t>(n);
      if (n == 0 || (*count < size && dataset().drop_remainder_)) {
        return OkStatus();
      }
      Status s = StackElements(absl::MakeSpan(elements_).first(n), out);
      // Their tensors go now; the vectors' memory stays for the next batch.
      for (size_t i = 0; i < n; ++i) elements_[i].clear();
      return s;
    }

    std::vector<Element> elements_;  // kept for their memory
    std::deque<Pulled> ready_;       // of a restored state
    bool ended_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t size_;
  const bool drop_remainder_;
  const bool parallel_;
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
  if (size <= 0) {
    return InvalidArgument("Batch size must be greater than zero.");
  }
  // The parallel op has num_parallel_calls before drop_remainder.
  return SetDataset<BatchDataset>(c, std::move(spec), std::move(input), size,
                                  drop, drop_input == 3);
}

HR_OP(BatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked; the last batch may be smaller.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeBatch<0>>);

HR_OP(BatchDatasetV2)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("parallel_copy: bool = false")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeBatch<2>>);

HR_OP(ParallelBatchDataset)
    .Input("input_dataset: variant")
    .Input("batch_size: int64")
    .Input("num_parallel_calls: int64")
    .Input("drop_remainder: bool")
    .Output("handle: variant")
    .Attr("parallel_copy: bool = false")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("deterministic: string = 'default'")
    .Attr("metadata: string = ''")
    .Doc("Consecutive elements stacked.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeBatch<3>>);

}  // namespace
}  // namespace headrace
