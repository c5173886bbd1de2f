// FlatMapDataset: the datasets that a function makes of elements, one behind
// another. InterleaveDataset: several of them by turns.
#include "data/dataset_op.h"
#include "data/transform/prefetch.h"

namespace headrace {
namespace {

// One open dataset of those that the function made.
struct Inner {
  int64_t number = 0;  // of the element it was made of
  Element args;        // that element
  IteratorPtr iterator;
};

// FlatMap is the case of a cycle and a block of one; its blocks do not end.
class InterleaveDataset : public InputDataset {
 public:
  InterleaveDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f,
                    StringView kind, int64_t cycle, int64_t block,
                    bool parallel)
      : InputDataset(std::move(spec), std::move(input)),
        f_(std::move(f)),
        kind_(kind),
        cycle_(cycle),
        block_(block),
        parallel_(parallel) {}
  StringView kind() const override { return kind_; }
  int64_t Cardinality() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<InterleaveDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f_->Begin(c));
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override;
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    void Advance() {
      in_block_ = 0;
      at_ = (at_ + 1) % dataset().cycle_;
    }
    Status Open(PullContext& c, Inner* inner);
    std::string Parent(const Inner& inner) const {
      return absl::StrCat(prefix(), "[", inner.number, "]");
    }

    FunctionRunPtr run_;
    std::vector<Inner> open_;  // by place in the cycle; grows as needed
    int64_t at_ = 0, in_block_ = 0, num_open_ = 0, taken_ = 0;
    Element results_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
  const StringView kind_;
  const int64_t cycle_, block_;
  const bool parallel_;  // each open dataset is read ahead
};

Status InterleaveDataset::Iterator::Open(PullContext& c, Inner* inner) {
  Element args = inner->args;
  HR_RETURN_IF_ERROR((*run_)(&args, &results_));
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results_));
  if (this->dataset().parallel_) dataset = Prefetched(std::move(dataset), -1);
  HR_ASSIGN_OR_RETURN(inner->iterator, dataset->Iterate(c, Parent(*inner)));
  return OkStatus();
}

Status InterleaveDataset::Iterator::Next(PullContext& c, Element* out,
                                         bool* end) {
  while (input_ || num_open_ > 0) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    if (at_ < static_cast<int64_t>(open_.size()) && open_[at_].iterator) {
      bool inner_end = false;
      HR_RETURN_IF_ERROR(open_[at_].iterator->Next(c, out, &inner_end));
      if (!inner_end) {
        if (++in_block_ == dataset().block_) Advance();
        return OkStatus();
      }
      open_[at_] = Inner();
      --num_open_;
      if (dataset().cycle_ > 1) Advance();
    } else if (input_) {
      Inner inner;
      bool input_end = false;
      HR_RETURN_IF_ERROR(NextInput(c, &inner.args, &input_end));
      if (input_end) continue;
      inner.number = taken_++;
      HR_RETURN_IF_ERROR(Open(c, &inner));
      if (at_ >= static_cast<int64_t>(open_.size())) open_.resize(at_ + 1);
      open_[at_] = std::move(inner);
      ++num_open_;
    } else if (at_ + 1 < static_cast<int64_t>(open_.size())) {
      Advance();
    } else {
      in_block_ = 0;
      at_ = 0;
    }
  }
  *end = true;
  return OkStatus();
}

Status InterleaveDataset::Iterator::Save(PullContext& c, StateWriter& w) {
  w.PutInt(prefix(), "cycle_index", at_);
  w.PutInt(prefix(), "block_index", in_block_);
  w.PutInt(prefix(), "element_index", taken_);
  w.PutInt(prefix(), "cycle_size", static_cast<int64_t>(open_.size()));
  for (size_t i = 0; i < open_.size(); ++i) {
    Inner& inner = open_[i];
    const std::string key = absl::StrCat("current_elements[", i, "]");
    w.PutInt(prefix(), key + ".number", inner.iterator ? inner.number : -1);
    if (!inner.iterator) continue;
    w.PutElement(prefix(), key, inner.args);
    HR_RETURN_IF_ERROR(inner.iterator->Save(c, w));
  }
  return SaveInput(c, w, prefix(), "end_of_input", input_.get());
}

Status InterleaveDataset::Iterator::Restore(PullContext& c,
                                            const StateReader& r) {
  HR_ASSIGN_OR_RETURN(at_, r.GetInt(prefix(), "cycle_index"));
  HR_ASSIGN_OR_RETURN(in_block_, r.GetInt(prefix(), "block_index"));
  HR_ASSIGN_OR_RETURN(taken_, r.GetInt(prefix(), "element_index"));
  HR_ASSIGN_OR_RETURN(const int64_t size, r.GetInt(prefix(), "cycle_size"));
  if (at_ < 0 || at_ >= dataset().cycle_ || in_block_ < 0 || size < 0 ||
      size > dataset().cycle_) {
    return InvalidArgument("the saved state of ", prefix(), " is damaged");
  }
  open_.clear();
  num_open_ = 0;
  for (int64_t i = 0; i < size; ++i) {
    Inner inner;
    const std::string key = absl::StrCat("current_elements[", i, "]");
    HR_ASSIGN_OR_RETURN(inner.number, r.GetInt(prefix(), key + ".number"));
    if (inner.number >= 0) {
      HR_ASSIGN_OR_RETURN(inner.args, r.GetElement(prefix(), key));
      HR_RETURN_IF_ERROR(Open(c, &inner));
      HR_RETURN_IF_ERROR(inner.iterator->Restore(c, r));
      ++num_open_;
    }
    open_.push_back(std::move(inner));
  }
  return RestoreInput(c, r, prefix(), "end_of_input", dataset().input(),
                      prefix(), &input_);
}

Status MakeFlatMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  return SetDataset<InterleaveDataset>(c, std::move(spec), std::move(input),
                                       std::move(f), "FlatMap", 1, 1, false);
}

// The input behind other_arguments, `i` from the end.
StatusOr<int64_t> LastInput(const KernelContext& c, int i, StringView name) {
  return IntInput(c, c.num_inputs() - i, name);
}

// `tail` inputs follow other_arguments: cycle_length and block_length first.
template <int tail>
Status MakeInterleave(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  HR_ASSIGN_OR_RETURN(int64_t cycle, LastInput(c, tail, "cycle_length"));
  HR_ASSIGN_OR_RETURN(const int64_t block,
                      LastInput(c, tail - 1, "block_length"));
  if (cycle == -1) cycle = 10;  // what upstream's AUTOTUNE means here
  if (cycle <= 0) {
    return InvalidArgument("`cycle_length` must be > 0");
  }
  if (block <= 0) return InvalidArgument("`block_length` must be > 0");
  return SetDataset<InterleaveDataset>(c, std::move(spec), std::move(input),
                                       std::move(f), "Interleave", cycle, block,
                                       tail > 2);
}

HR_OP(FlatMapDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, one behind another.")
        HR_DATASET_END(MakeFlatMap);

HR_OP(InterleaveDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
        HR_DATASET_END(MakeInterleave<2>);

HR_OP(ParallelInterleaveDatasetV2)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Input("num_parallel_calls: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("sloppy: bool = false")
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
        HR_DATASET_END(MakeInterleave<3>);

HR_OP(ParallelInterleaveDatasetV4)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Input("buffer_output_elements: int64")
    .Input("prefetch_input_elements: int64")
    .Input("num_parallel_calls: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("deterministic: string = 'default'")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
        HR_DATASET_END(MakeInterleave<5>);

}  // namespace
}  // namespace headrace
