// RangeDataset: integers at even steps.
#include "data/dataset_op.h"

namespace headrace {
namespace {

// The number of values from start to stop; bounds are any int64.
int64_t CountOf(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  // As unsigned: the distance of two int64 may need 64 bits.
  const uint64_t span = step > 0 ? static_cast<uint64_t>(stop) - start
                                 : static_cast<uint64_t>(start) - stop;
  // The least int64 has no negative.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step)
                                   : uint64_t{0} - static_cast<uint64_t>(step);
  const uint64_t n = span / stride + (span % stride != 0);
  return static_cast<int64_t>(std::min<uint64_t>(n, INT64_MAX));
}

Tensor IntegerOf(DType dtype, int64_t v) {
  Tensor t = Tensor::Scalar<int64_t>(v);
  DispatchDType(dtype, RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    t = Tensor::Scalar<T>(static_cast<T>(v));
  });
  return t;
}

class RangeDataset : public Dataset {
 public:
  RangeDataset(ElementSpec spec, int64_t start, int64_t stop, int64_t step)
      : Dataset(std::move(spec)),
        start_(start),
        step_(step),
        count_(CountOf(start, stop, step)) {}
  StatusOr<ElementReaderPtr> Reader(PullContext& c) const override {
    auto self =
        std::static_pointer_cast<const RangeDataset>(shared_from_this());
    return ReaderOf([self](PullContext&, int64_t i, Element* out) {
      *out = {IntegerOf(self->spec().types[0], self->At(i))};
      return OkStatus();
    });
  }
  StringView kind() const override { return "Range"; }
  int64_t Count() const override { return count_; }
  int64_t At(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(i) * step_);
  }

  class Iterator : public IteratorOf<RangeDataset> {
   public:
    using IteratorOf::IteratorOf;
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (at_ >= dataset().count_) {
        *end = true;
        return OkStatus();
      }
      const int64_t v = dataset().At(at_++);
      const DType dtype = dataset().spec().types[0];
      out->resize(1);
      (*out)[0] = dtype == DType::kInt64 ? Tensor::Scalar<int64_t>(v)
                                         : IntegerOf(dtype, v);
      return OkStatus();
    }
    Status Skip(PullContext& c, int64_t n, int64_t* skipped) override {
      *skipped = std::min(n, dataset().count_ - at_);
      at_ += *skipped;
      return OkStatus();
    }
    Status NextRows(PullContext& c, int64_t n, Element* rows, int64_t* count,
                    bool* done) override {
      // Other types take the general way; ranges are int64 as a rule.
      if (dataset().spec().types[0] != DType::kInt64) return OkStatus();
      *done = true;
      *count = std::min(n, dataset().count_ - at_);
      rows->resize(1);
      HR_ASSIGN_OR_RETURN((*rows)[0],
                          Tensor::Allocate(DType::kInt64, Shape{*count}));
      int64_t* to = (*rows)[0].data<int64_t>();
      for (int64_t i = 0; i < *count; ++i) to[i] = dataset().At(at_ + i);
      at_ += *count;
      return OkStatus();
    }
    // The state is the next value, as upstream's.
    Status Save(PullContext& c, StateWriter& w) override {
      w.PutInt(prefix(), "next", dataset().At(at_));
      w.PutInt(prefix(), "global_shuffle_iterator_next_index", 0);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(const int64_t next, r.GetInt(prefix(), "next"));
      // How many values lie before the next one is its index.
      at_ = std::min(CountOf(dataset().start_, next, dataset().step_),
                     dataset().count_);
      return OkStatus();
    }

   private:
    int64_t at_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const int64_t start_, step_, count_;
};

Status MakeRange(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(const int64_t start, IntInput(c, 0, "start"));
  HR_ASSIGN_OR_RETURN(const int64_t stop, IntInput(c, 1, "stop"));
  HR_ASSIGN_OR_RETURN(const int64_t step, IntInput(c, 2, "step"));
  if (step == 0) return InvalidArgument("step must be a non-zero integer.");
  if (spec.types.size() != 1) {
    return InvalidArgument("RangeDataset has one component, not ",
                           spec.types.size());
  }
  if (!DispatchDType(spec.types[0], RealTypes{}, [](auto) {})) {
    return Unimplemented("RangeDataset of ", DTypeName(spec.types[0]));
  }
  return SetDataset<RangeDataset>(c, std::move(spec), start, stop, step);
}

HR_OP(RangeDataset)
    .Input("start: int64")
    .Input("stop: int64")
    .Input("step: int64")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Attr("replicate_on_split: bool = false")
    .Doc("Integers from start to stop (left out) at even steps.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeRange>);

}  // namespace
}  // namespace headrace
