// DirectedInterleaveDataset: a dataset of numbers says which of several
// datasets the next element is of.
#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class DirectedDataset : public InputDataset {
 public:
  DirectedDataset(ElementSpec spec, DatasetPtr selector,
                  std::vector<DatasetPtr> inputs, bool stop)
      : InputDataset(std::move(spec), std::move(selector)),
        inputs_(std::move(inputs)),
        stop_on_empty_(stop) {}
  StringView kind() const override { return "DirectedInterleave"; }
  std::vector<DatasetPtr> inputs() const override {
    std::vector<DatasetPtr> all = InputDataset::inputs();
    all.insert(all.end(), inputs_.begin(), inputs_.end());
    return all;
  }
  // As upstream says it, whatever the selector is.
  int64_t Count() const override {
    for (const DatasetPtr& d : inputs_) {
      if (d->Cardinality() == kInfiniteCardinality) return kInfiniteCardinality;
    }
    return kUnknownCardinality;
  }

  class Iterator : public InputIterator<DirectedDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      for (size_t i = 0; i < dataset().inputs_.size(); ++i) {
        HR_ASSIGN_OR_RETURN(
            IteratorPtr input,
            dataset().inputs_[i]->Iterate(c, Parent(static_cast<int>(i))));
        inputs_.push_back(std::move(input));
        ++left_;
      }
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (left_ > 0) {
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        Element choice;
        HR_RETURN_IF_ERROR(NextInput(c, &choice, end));
        if (*end) return OkStatus();
        if (choice.size() != 1 || choice[0].dtype() != DType::kInt64 ||
            choice[0].num_elements() != 1) {
          return InvalidArgument("a choice of datasets must be a scalar int64");
        }
        const int64_t i = choice[0].scalar<int64_t>();
        if (i < 0 || i >= static_cast<int64_t>(inputs_.size())) {
          return InvalidArgument("Selector index out of range: ", i,
                                 " >= ", inputs_.size());
        }
        // An input that has ended is passed over and another choice is asked
        // for, as upstream does.
        if (!inputs_[i]) continue;
        bool input_end = false;
        HR_RETURN_IF_ERROR(inputs_[i]->Next(c, out, &input_end));
        if (!input_end) return OkStatus();
        inputs_[i].reset();
        left_ = dataset().stop_on_empty_ ? 0 : left_ - 1;
      }
      input_.reset();
      for (IteratorPtr& input : inputs_) input.reset();
      *end = true;
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(
          SaveInput(c, w, prefix(), SelectorKey(), input_.get()));
      for (size_t i = 0; i < inputs_.size(); ++i) {
        HR_RETURN_IF_ERROR(SaveInput(c, w, prefix(), Key(i), inputs_[i].get()));
      }
      return OkStatus();
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      left_ = 0;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        HR_RETURN_IF_ERROR(
            RestoreInput(c, r, prefix(), Key(i), *dataset().inputs_[i],
                         Parent(static_cast<int>(i)), &inputs_[i]));
        left_ += inputs_[i] != nullptr;
      }
      return RestoreInput(c, r, prefix(), SelectorKey(), dataset().input(),
                          prefix(), &input_);
    }

   private:
    std::string Parent(int i) const {
      return absl::StrCat(prefix(), "[", i, "]");
    }
    std::string SelectorKey() const {
      return FullKey(prefix(), "selector_input_impl_empty");
    }
    std::string Key(size_t i) const {
      return FullKey(prefix(), absl::StrCat("data_input_impl_empty[", i, "]"));
    }
    std::vector<IteratorPtr> inputs_;  // null: at its end
    int64_t left_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const std::vector<DatasetPtr> inputs_;
  const bool stop_on_empty_;
};

Status MakeDirected(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr selector, DatasetOf(c.input(0)));
  if (selector->spec().types != std::vector<DType>{DType::kInt64}) {
    return InvalidArgument(
        "The selector dataset must yield a single scalar int64");
  }
  std::vector<DatasetPtr> inputs;
  for (int i = 1; i < c.num_inputs(); ++i) {
    HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(i)));
    if (input->spec().types != spec.types) {
      return InvalidArgument(
          "All inputs must have the same output_dtypes: input ", i - 1,
          " differs");
    }
    inputs.push_back(std::move(input));
  }
  const bool* stop = c.op().attrs().Get<bool>("stop_on_empty_dataset");
  return SetDataset<DirectedDataset>(c, std::move(spec), std::move(selector),
                                     std::move(inputs),
                                     stop != nullptr && *stop);
}

HR_OP(DirectedInterleaveDataset)
    .Input("selector_input_dataset: variant")
    .Input("data_input_datasets: N * variant")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("N: int >= 1")
    .Attr("stop_on_empty_dataset: bool = false")
    .Doc("Elements of the datasets that a dataset of numbers names.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeDirected>);

[[maybe_unused]] const bool kExperimentalDirectedInterleave =
    RegisterLike("ExperimentalDirectedInterleaveDataset",
                 "DirectedInterleaveDataset", [](OpDef& def) {
                   def.attrs.pop_back();  // stop_on_empty_dataset
                 });

}  // namespace
}  // namespace headrace
