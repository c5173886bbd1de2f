// FilterDataset: elements for which a predicate holds. TakeWhileDataset: those
// before the first for which it does not.
#include "data/dataset_op.h"

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
  int64_t Cardinality() const override { return kUnknownCardinality; }

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
        args_ = *out;
        HR_RETURN_IF_ERROR((*run_)(&args_, &results_));
        HR_ASSIGN_OR_RETURN(const bool keep, PredicateResult(results_));
        if (keep) return OkStatus();
        if (!kTakeWhile) continue;
        this->input_.reset();
        *end = true;
        return OkStatus();
      }
    }

   private:
    FunctionRunPtr run_;
    Element args_, results_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
};

template <bool kTakeWhile>
Status MakePredicate(KernelContext& c) {
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
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("The elements for which a predicate holds.")
        HR_DATASET_END(MakePredicate<false>);

HR_OP(TakeWhileDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("predicate: func")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("metadata: string = ''")
    .Doc("The elements before the first for which a predicate fails.")
        HR_DATASET_END(MakePredicate<true>);

}  // namespace
}  // namespace headrace
