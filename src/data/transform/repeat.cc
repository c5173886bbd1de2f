// RepeatDataset: the input again and again.
#include "data/dataset_op.h"
#include "data/transform/shuffle.h"

namespace headrace {
namespace {

class RepeatDataset : public InputDataset {
 public:
  RepeatDataset(ElementSpec spec, DatasetPtr input, int64_t count)
      : InputDataset(std::move(spec), std::move(input)), count_(count) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    if (count_ < 0) {
      return FailedPrecondition("`repeat(", count_,
                                ")` does not support random access of tf.data "
                                "datasets.");
    }
    HR_ASSIGN_OR_RETURN(ElementReaderPtr from, input().Reader(c));
    return ReadAt(std::move(from),
                  [n = std::max<int64_t>(input().Cardinality(), 1)](int64_t i) {
                    return i % n;
                  });
  }
  StringView kind() const override {
    if (count_ < 0) return "ForeverRepeat";
    return count_ == 0 ? "EmptyRepeat" : "FiniteRepeat";
  }
  int64_t Count() const override {
    const int64_t n = input().Cardinality();
    if (count_ < 0) return n == 0 ? 0 : kInfiniteCardinality;
    // Before n is looked at: no turn of an infinite input is still nothing.
    if (count_ == 0) return 0;
    int64_t total;
    if (n < 0) return n;
    // More elements than int64 counts are as good as infinitely many.
    return MultiplyChecked(n, count_, &total) ? total : kInfiniteCardinality;
  }

  // One turn is the input itself; shuffles go from turn to turn themselves.
  DatasetPtr StandIn(const PullContext& c) const override {
    if (c.options.drop_idle && count_ == 1) return inputs()[0];
    if (!c.options.fuse_shuffles || count_ == 0) return nullptr;
    return RepeatedShuffle(*input().Resolved(c), count_);
  }

  class Iterator : public IteratorOf<RepeatDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        if (dataset().count_ >= 0 && turn_ >= dataset().count_) {
          *end = true;
          return OkStatus();
        }
        const bool fresh = !input_;
        if (fresh) {
          HR_ASSIGN_OR_RETURN(input_, dataset().input().Iterate(c, Parent()));
        }
        bool input_end = false;
        HR_RETURN_IF_ERROR(input_->Next(c, out, &input_end));
        if (!input_end) return OkStatus();
        input_.reset();
        ++turn_;
        // An empty input never gives anything, however often it begins.
        if (fresh && dataset().count_ < 0) {
          *end = true;
          return OkStatus();
        }
        HR_RETURN_IF_ERROR(c.CheckCancelled());
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      if (dataset().count_ == 0) return OkStatus();
      w.PutInt(prefix(), "i", turn_);
      return SaveInput(c, w, prefix(), "input_impl_empty", input_.get());
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      if (dataset().count_ == 0) return OkStatus();
      input_.reset();
      HR_ASSIGN_OR_RETURN(turn_, r.GetCount(prefix(), "i"));
      return RestoreInput(c, r, prefix(), "input_impl_empty", dataset().input(),
                          Parent(), &input_);
    }

   private:
    // Turns have states of their own.
    std::string Parent() const {
      return absl::StrCat(prefix(), "[", turn_, "]");
    }

    IteratorPtr input_;
    int64_t turn_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t count_;  // negative: for ever
};

Status MakeRepeat(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(const int64_t count, IntInput(c, 1, "count"));
  return SetDataset<RepeatDataset>(c, std::move(spec), std::move(input), count);
}

HR_OP(RepeatDataset)
    .Input("input_dataset: variant")
    .Input("count: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The input again and again.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRepeat>);

}  // namespace
}  // namespace headrace
