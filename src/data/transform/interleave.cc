// InterleaveDataset: the datasets that a function makes of elements, several of
// them by turns. ParallelInterleaveDataset: each of them read ahead.
#include <deque>

#include "data/dataset_op.h"
#include "data/transform/read_ahead.h"
#include "data/transform/shard.h"
#include "op/op_like.h"
#include "op/registry.h"

namespace headrace {
namespace {

// One open dataset of those that the function made.
struct Inner {
  int64_t number = 0;  // of the element it was made of
  Element args;        // that element
  std::unique_ptr<ReadAhead> reader;
  bool whole = true;  // the dataset is there, not only what was read of it
};

// A state has something for every place of a cycle.
constexpr int64_t kMostSavedPlaces = 1 << 20;

class InterleaveDataset : public InputDataset {
 public:
  InterleaveDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f,
                    int64_t cycle, int64_t block, bool parallel)
      : InputDataset(std::move(spec), std::move(input)),
        f_(std::move(f)),
        cycle_(cycle),
        block_(block),
        parallel_(parallel) {}
  StringView kind() const override {
    return parallel_ ? "ParallelInterleaveV4" : "Interleave";
  }
  int64_t Count() const override { return kUnknownCardinality; }
  bool reads_files() const override { return f_->reads_files(); }

  class Iterator : public KeptInputIterator<InterleaveDataset> {
   public:
    using KeptInputIterator::KeptInputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f_->Begin(c));
      inner_ = c.Inner();
      if (!dataset().reads_files()) return KeptInputIterator::Start(c);
      HR_ASSIGN_OR_RETURN(input_,
                          IterateFiles(dataset().inputs()[0], c, prefix()));
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override;
    Status Save(PullContext& c, StateWriter& w) override;
    Status Restore(PullContext& c, const StateReader& r) override;

   private:
    void Advance() {
      in_block_ = 0;
      at_ = (at_ + 1) % dataset().cycle_;
    }
    // The dataset of inner->args; its state goes by the number, or by `place`.
    Status Open(int64_t place, Inner* inner);
    // The next that waits or that the input gives, into `place`.
    Status OpenNext(PullContext& c);
    Status SavePlain(StateWriter& w);
    Status RestorePlain(const StateReader& r);
    Status SaveParallel(StateWriter& w);
    Status RestoreParallel(const StateReader& r);
    Status SaveOne(StateWriter& w, const std::string& at, Inner& inner);
    Status RestoreOne(const StateReader& r, const std::string& at,
                      Inner* inner);

    FunctionRunPtr run_;
    PullContext inner_;
    std::vector<Inner> open_;    // by place in the cycle; grows as needed
    std::deque<Inner> waiting_;  // of a restored state, before the input's
    int64_t at_ = 0, in_block_ = 0, num_open_ = 0, taken_ = 0;
    Element results_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
  const int64_t cycle_, block_;
  const bool parallel_;  // each open dataset is read ahead
};

Status InterleaveDataset::Iterator::Open(int64_t place, Inner* inner) {
  Element args = inner->args;
  Status s = (*run_)(&args, &results_);
  if (!s.ok()) return dataset().f_->Blame(s, prefix());
  HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results_));
  const bool parallel = this->dataset().parallel_;
  // Upstream names the inner iterators of parallel walks by elements and those
  // of plain ones by places.
  HR_ASSIGN_OR_RETURN(
      IteratorPtr iterator,
      dataset->Iterate(
          inner_,
          absl::StrCat(prefix(), "[", parallel ? inner->number : place, "]")));
  inner->reader =
      std::make_unique<ReadAhead>(std::move(iterator), parallel ? -1 : 0);
  return OkStatus();
}

Status InterleaveDataset::Iterator::OpenNext(PullContext& c) {
  Inner inner;
  if (!waiting_.empty()) {
    inner = std::move(waiting_.front());
    waiting_.pop_front();
  } else {
    bool input_end = false;
    HR_RETURN_IF_ERROR(NextInput(c, &inner.args, &input_end));
    if (input_end) return OkStatus();
    inner.number = taken_++;
    HR_RETURN_IF_ERROR(Open(at_, &inner));
  }
  // As needed: a cycle length is the caller's and may be far more than there
  // are elements.
  if (at_ >= static_cast<int64_t>(open_.size())) open_.resize(at_ + 1);
  open_[at_] = std::move(inner);
  ++num_open_;
  return OkStatus();
}

Status InterleaveDataset::Iterator::Next(PullContext& c, Element* out,
                                         bool* end) {
  while (!ended_ || num_open_ > 0 || !waiting_.empty()) {
    HR_RETURN_IF_ERROR(c.CheckCancelled());
    if (at_ < static_cast<int64_t>(open_.size()) && open_[at_].reader) {
      bool inner_end = false;
      HR_RETURN_IF_ERROR(open_[at_].reader->Next(inner_, out, &inner_end));
      if (!inner_end) {
        if (++in_block_ == dataset().block_) Advance();
        return OkStatus();
      }
      open_[at_] = Inner();
      --num_open_;
      // The place of a dataset that ended is filled when the walk comes round
      // again, as upstream does.
      Advance();
    } else if (!ended_ || !waiting_.empty()) {
      HR_RETURN_IF_ERROR(OpenNext(c));
    } else if (at_ + 1 < static_cast<int64_t>(open_.size())) {
      // Behind the last place that was ever filled all others are empty, so the
      // walk goes round.
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
  HR_RETURN_IF_ERROR(KeptInputIterator::Save(c, w));
  w.PutInt(prefix(), "cycle_index", at_);
  w.PutInt(prefix(), "block_index", in_block_);
  w.PutInt(prefix(), "end_of_input", ended_);
  // A cycle's places that nothing has come to are there all the same.
  if (dataset().cycle_ > kMostSavedPlaces) {
    return ResourceExhausted("a cycle of ", dataset().cycle_,
                             " datasets is too long to be saved");
  }
  // States have a place for each of the cycle, filled or not; walks make them
  // as they need them.
  open_.resize(dataset().cycle_);
  return dataset().parallel_ ? SaveParallel(w) : SavePlain(w);
}

Status InterleaveDataset::Iterator::Restore(PullContext& c,
                                            const StateReader& r) {
  HR_RETURN_IF_ERROR(KeptInputIterator::Restore(c, r));
  HR_ASSIGN_OR_RETURN(at_, r.GetInt(prefix(), "cycle_index"));
  HR_ASSIGN_OR_RETURN(in_block_, r.GetInt(prefix(), "block_index"));
  HR_ASSIGN_OR_RETURN(ended_, r.GetBool(prefix(), "end_of_input"));
  at_ = std::max<int64_t>(at_, 0);  // -1: at the end
  if (at_ >= dataset().cycle_ || in_block_ < 0 ||
      in_block_ >= dataset().block_) {
    return DamagedState(prefix());
  }
  open_.clear();
  waiting_.clear();
  num_open_ = 0;
  HR_RETURN_IF_ERROR(dataset().parallel_ ? RestoreParallel(r)
                                         : RestorePlain(r));
  for (const Inner& inner : open_) num_open_ += inner.reader != nullptr;
  return OkStatus();
}

Status InterleaveDataset::Iterator::SavePlain(StateWriter& w) {
  w.PutInt(prefix(), "num_open", num_open_);
  w.PutInt(prefix(), "next_input_element_index", taken_);
  // Upstream's mark for states without checkpoints of the input's elements.
  w.PutInt(prefix(), "last_checkpointed_input_element_index", -1);
  for (size_t i = 0; i < open_.size(); ++i) {
    Inner& inner = open_[i];
    const std::string place = absl::StrCat("[", i, "]");
    w.PutInt(prefix(), "current_elements_uninitialized" + place,
             inner.reader == nullptr);
    if (!inner.reader) continue;
    HR_RETURN_IF_ERROR(w.PutElement(prefix(), "args_size" + place,
                                    "args_list_" + place, inner.args));
    std::vector<Pulled> none;
    HR_RETURN_IF_ERROR(inner.reader->Save(inner_, w, &none));
  }
  return OkStatus();
}

Status InterleaveDataset::Iterator::RestorePlain(const StateReader& r) {
  HR_ASSIGN_OR_RETURN(taken_, r.GetCount(prefix(), "next_input_element_index"));
  for (int64_t i = 0; i < dataset().cycle_; ++i) {
    const std::string place = absl::StrCat("[", i, "]");
    HR_ASSIGN_OR_RETURN(
        const bool closed,
        r.GetBool(prefix(), "current_elements_uninitialized" + place));
    open_.emplace_back();
    if (closed) continue;
    HR_ASSIGN_OR_RETURN(
        open_[i].args,
        r.GetElement(prefix(), "args_size" + place, "args_list_" + place));
    HR_RETURN_IF_ERROR(
        CheckSaved(prefix(), dataset().input().spec(), open_[i].args));
    HR_RETURN_IF_ERROR(Open(i, &open_[i]));
    HR_RETURN_IF_ERROR(open_[i].reader->Restore(inner_, r, {}));
  }
  return OkStatus();
}

Status InterleaveDataset::Iterator::SaveOne(StateWriter& w,
                                            const std::string& at,
                                            Inner& inner) {
  w.PutInt(at, "element_uninitialized", inner.reader == nullptr);
  if (!inner.reader) return OkStatus();
  w.PutInt(at, "restore_iterator", inner.whole);
  if (inner.whole) {
    w.PutInt(at, ".id", inner.number);
    HR_RETURN_IF_ERROR(w.PutElement(at, ".inputs.size", ".inputs", inner.args));
  }
  std::vector<Pulled> ahead;
  HR_RETURN_IF_ERROR(inner.reader->Save(inner_, w, &ahead));
  w.PutInt(at, ".results.size", static_cast<int64_t>(ahead.size()));
  for (size_t i = 0; i < ahead.size(); ++i) {
    const std::string key = absl::StrCat(".results[", i, "]");
    w.PutStatus(at, key + ".code", key + ".error_message", ahead[i].status);
    if (!ahead[i].status.ok()) ahead[i].element.clear();
    HR_RETURN_IF_ERROR(w.PutElement(at, key + ".size", key, ahead[i].element));
    w.PutMark(at, key + ".is_ready");
  }
  return OkStatus();
}

Status InterleaveDataset::Iterator::RestoreOne(const StateReader& r,
                                               const std::string& at,
                                               Inner* inner) {
  HR_ASSIGN_OR_RETURN(const bool closed,
                      r.GetBool(at, "element_uninitialized"));
  if (closed) return OkStatus();
  HR_ASSIGN_OR_RETURN(inner->whole, r.GetBool(at, "restore_iterator"));
  HR_ASSIGN_OR_RETURN(const int64_t n, r.GetCount(at, ".results.size"));
  std::vector<Pulled> ahead;
  for (int64_t i = 0; i < n; ++i) {
    const std::string key = absl::StrCat(".results[", i, "]");
    Pulled p;
    HR_RETURN_IF_ERROR(
        r.GetStatus(at, key + ".code", key + ".error_message", &p.status));
    HR_ASSIGN_OR_RETURN(p.element, r.GetElement(at, key + ".size", key));
    if (p.status.ok()) {
      HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().spec(), p.element));
    }
    ahead.push_back(std::move(p));
  }
  if (inner->whole) {
    HR_ASSIGN_OR_RETURN(inner->number, r.GetCount(at, ".id"));
    HR_ASSIGN_OR_RETURN(inner->args,
                        r.GetElement(at, ".inputs.size", ".inputs"));
    HR_RETURN_IF_ERROR(
        CheckSaved(prefix(), dataset().input().spec(), inner->args));
    HR_RETURN_IF_ERROR(Open(0, inner));
  } else {
    // A dataset that had ended when the state was written: only what was read
    // ahead of it is left.
    inner->reader = std::make_unique<ReadAhead>(nullptr, -1);
  }
  return inner->reader->Restore(inner_, r, std::move(ahead));
}

Status InterleaveDataset::Iterator::SaveParallel(StateWriter& w) {
  w.PutInt(prefix(), "element_id_counter", taken_);
  w.PutInt(prefix(), "current_elements.size",
           static_cast<int64_t>(open_.size()));
  w.PutInt(prefix(), "future_elements.size",
           static_cast<int64_t>(waiting_.size()));
  for (size_t i = 0; i < open_.size(); ++i) {
    HR_RETURN_IF_ERROR(SaveOne(
        w, absl::StrCat(prefix(), "::current_elements::", i), open_[i]));
  }
  for (size_t i = 0; i < waiting_.size(); ++i) {
    HR_RETURN_IF_ERROR(SaveOne(
        w, absl::StrCat(prefix(), "::future_elements::", i), waiting_[i]));
  }
  return OkStatus();
}

Status InterleaveDataset::Iterator::RestoreParallel(const StateReader& r) {
  HR_ASSIGN_OR_RETURN(taken_, r.GetCount(prefix(), "element_id_counter"));
  HR_ASSIGN_OR_RETURN(const int64_t open,
                      r.GetCount(prefix(), "current_elements.size"));
  HR_ASSIGN_OR_RETURN(const int64_t waiting,
                      r.GetCount(prefix(), "future_elements.size"));
  // Before anything of that number is made.
  if (open > dataset().cycle_) return DamagedState(prefix());
  for (int64_t i = 0; i < open; ++i) {
    open_.emplace_back();
    HR_RETURN_IF_ERROR(RestoreOne(
        r, absl::StrCat(prefix(), "::current_elements::", i), &open_.back()));
  }
  for (int64_t i = 0; i < waiting; ++i) {
    waiting_.emplace_back();
    HR_RETURN_IF_ERROR(RestoreOne(
        r, absl::StrCat(prefix(), "::future_elements::", i), &waiting_.back()));
    if (!waiting_.back().reader) waiting_.pop_back();
  }
  return OkStatus();
}

// The input behind other_arguments, `i` from the end.
StatusOr<int64_t> LastInput(const KernelContext& c, int i, StringView name) {
  return IntInput(c, c.num_inputs() - i, name);
}

// `tail` inputs follow other_arguments: cycle_length and block_length first.
// kCalls: the last of more says how many calls there may be at once.
template <int tail, bool kCalls = true>
Status MakeInterleave(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  HR_ASSIGN_OR_RETURN(int64_t cycle, LastInput(c, tail, "cycle_length"));
  HR_ASSIGN_OR_RETURN(const int64_t block,
                      LastInput(c, tail - 1, "block_length"));
  int64_t parallel = 0;
  if (tail > 2 && kCalls) {
    HR_ASSIGN_OR_RETURN(parallel, LastInput(c, 1, "num_parallel_calls"));
  }
  if (cycle > 0 && parallel > cycle) {
    return InvalidArgument(
        "If `cycle_length` is set to a fixed value, `num_parallel_calls` must "
        "be either `tf.data.AUTOTUNE` or a value less than or equal to "
        "`cycle_length`. However, `num_parallel_calls` is ",
        parallel, " and `cycle_length` is ", cycle);
  }
  if (cycle == -1) cycle = 10;  // what upstream's AUTOTUNE means here
  if (cycle <= 0) {
    return InvalidArgument("`cycle_length` must be > 0");
  }
  if (block <= 0) return InvalidArgument("`block_length` must be > 0");
  return SetDataset<InterleaveDataset>(c, std::move(spec), std::move(input),
                                       std::move(f), cycle, block, tail > 2);
}

HR_OP(InterleaveDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeInterleave<2>>);

HR_OP(ParallelInterleaveDatasetV2)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Input("num_parallel_calls: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("sloppy: bool = false")
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeInterleave<3>>);

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
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeInterleave<5>>);

[[maybe_unused]] const bool kInterleaveV3 = RegisterLike(
    "ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV2",
    [](OpDef& def) {
      std::erase_if(def.attrs,
                    [](const AttrDef& a) { return a.name == "sloppy"; });
      AttrDef order =
          *FindOp("ParallelInterleaveDatasetV4")->FindAttr("deterministic");
      def.attrs.insert(def.attrs.begin() + 1, std::move(order));
    });

HR_OP(ParallelInterleaveDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Input("sloppy: bool")
    .Input("buffer_output_elements: int64")
    .Input("prefetch_input_elements: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeInterleave<5, false>>);
[[maybe_unused]] const bool kExperimentalInterleave =
    RegisterLike("ExperimentalParallelInterleaveDataset",
                 "ParallelInterleaveDataset", WithoutMetadata);

HR_OP(LegacyParallelInterleaveDatasetV2)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("cycle_length: int64")
    .Input("block_length: int64")
    .Input("buffer_output_elements: int64")
    .Input("prefetch_input_elements: int64")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("deterministic: string = 'default'")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, by turns.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeInterleave<4, false>>);

}  // namespace
}  // namespace headrace
