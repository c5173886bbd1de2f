// FilterDataset, ParallelFilterDataset: elements for which a predicate holds.
// TakeWhileDataset: those before the first for which it does not.
#include "data/dataset_op.h"
#include "data/inspect/stats.h"
#include "op/op_like.h"

namespace headrace {
namespace {

template <bool kTakeWhile>
class PredicateDataset : public InputDataset {
 public:
  PredicateDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f)
      : InputDataset(std::move(spec), std::move(input)), f_(std::move(f)) {}
  StringView kind() const override {
    return kTakeWhile ? "TakeWhile" : "Filter";
  }
  int64_t Count() const override { return kUnknownCardinality; }

  class Iterator : public InputIterator<PredicateDataset> {
   public:
    using Base = InputIterator<PredicateDataset>;
    using Base::Base;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, this->dataset().f_->Begin(c));
      return Base::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(this->NextInput(c, out, end));
        if (*end) return OkStatus();
        // A copy, as the call takes its arguments over and the element may be
        // kept.
        args_ = *out;
        Status s = (*run_)(&args_, &results_);
        if (!s.ok()) {
          return kTakeWhile ? s : this->dataset().f_->Blame(s, this->prefix());
        }
        HR_ASSIGN_OR_RETURN(const bool keep, PredicateResult(results_));
        (keep ? kept_ : dropped_) += 1;
        HR_RETURN_IF_ERROR(Tell(c));
        if (keep) return OkStatus();
        if (!kTakeWhile) continue;
        this->input_.reset();
        *end = true;
        return OkStatus();
      }
    }

    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(
          SaveInput(c, w, this->prefix(), Key(), this->input_.get()));
      if (kTakeWhile) return OkStatus();
      // Upstream saves these two counts; nothing is done with them.
      w.PutInt(this->prefix(), "filtered_elements", kept_);
      w.PutInt(this->prefix(), "dropped_elements", dropped_);
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      if (!kTakeWhile) {
        HR_ASSIGN_OR_RETURN(kept_,
                            r.GetCount(this->prefix(), "filtered_elements"));
        HR_ASSIGN_OR_RETURN(dropped_,
                            r.GetCount(this->prefix(), "dropped_elements"));
      }
      return RestoreInput(c, r, this->prefix(), Key(), this->dataset().input(),
                          this->prefix(), &this->input_);
    }

   private:
    Status Tell(PullContext& c) const {
      if (kTakeWhile || c.stats == nullptr) return OkStatus();
      const int64_t step = kept_ + dropped_;
      HR_RETURN_IF_ERROR(c.stats->SetNumber("FilterDataset::filtered_elements",
                                            static_cast<double>(kept_), step));
      return c.stats->SetNumber("FilterDataset::dropped_elements",
                                static_cast<double>(dropped_), step);
    }
    std::string Key() const {
      return kTakeWhile ? FullKey(this->prefix(), "input_impl_empty")
                        : "input_impl_empty";
    }
    FunctionRunPtr run_;
    Element args_, results_;
    int64_t kept_ = 0, dropped_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
};

// The predicate is asked on the thread that reads: in order, which is right for
// all that `deterministic` may say.
Status CheckParallelFilter(const KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const int64_t calls,
                      IntInput(c, c.num_inputs() - 1, "num_parallel_calls"));
  // -1 is tf.data.AUTOTUNE.
  if (calls != -1 && calls <= 0) {
    return InvalidArgument("num_parallel_calls must be greater than zero.");
  }
  const std::string& order = c.op().string_attr("deterministic");
  if (order == "true" || order == "false" || order == "default") {
    return OkStatus();
  }
  return InvalidArgument("Unrecognized determinism policy: ", order);
}

template <bool kTakeWhile, bool kParallel = false>
Status MakePredicate(KernelContext& c) {
  if (kParallel) HR_RETURN_IF_ERROR(CheckParallelFilter(c));
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr f,
      CapturedFunction::Make(c, "predicate", "other_arguments"));
  return SetDataset<PredicateDataset<kTakeWhile>>(
      c, std::move(spec), std::move(input), std::move(f));
}

HR_OP(FilterDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("predicate: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The elements for which a predicate holds.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePredicate<false>>);

HR_OP(ParallelFilterDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Input("num_parallel_calls: int64")
    .Output("handle: variant")
    .Attr("predicate: func")
    .Attr("deterministic: string = 'default'")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The elements for which a predicate holds.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePredicate<false, true>>);

HR_OP(TakeWhileDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("predicate: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The elements before the first for which a predicate fails.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakePredicate<true>>);

[[maybe_unused]] const bool kExperimentalTakeWhile = RegisterLike(
    "ExperimentalTakeWhileDataset", "TakeWhileDataset", WithoutMetadata);

}  // namespace
}  // namespace headrace
