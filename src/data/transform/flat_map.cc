// FlatMapDataset: the datasets that a function makes of elements, one behind
// another.
#include "data/dataset_op.h"
#include "data/transform/shard.h"

namespace headrace {
namespace {

class FlatMapDataset : public InputDataset {
 public:
  FlatMapDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f)
      : InputDataset(std::move(spec), std::move(input)), f_(std::move(f)) {}
  StringView kind() const override { return "FlatMap"; }
  int64_t Count() const override { return kUnknownCardinality; }
  bool reads_files() const override { return f_->reads_files(); }

  class Iterator : public InputIterator<FlatMapDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f_->Begin(c));
      inner_ = c.Inner();
      if (!dataset().reads_files()) return InputIterator::Start(c);
      HR_ASSIGN_OR_RETURN(input_,
                          IterateFiles(dataset().inputs()[0], c, prefix()));
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      while (true) {
        if (current_) {
          bool current_end = false;
          HR_RETURN_IF_ERROR(current_->Next(inner_, out, &current_end));
          if (!current_end) return OkStatus();
          current_.reset();
        }
        HR_RETURN_IF_ERROR(c.CheckCancelled());
        HR_RETURN_IF_ERROR(NextInput(c, &args_, end));
        if (*end) return OkStatus();
        ++taken_;
        HR_RETURN_IF_ERROR(Open());
      }
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(SaveInput(c, w, prefix(), "exhausted", input_.get()));
      if (!input_) return OkStatus();
      w.PutInt(prefix(), "element_index", taken_);
      w.PutInt(prefix(), "current_element_iterator_uninitialized", !current_);
      if (!current_) return OkStatus();
      // A function's dataset cannot be saved itself: it is made again of the
      // same element.
      HR_RETURN_IF_ERROR(
          w.PutElement(prefix(), "inputs_size", "inputs", args_));
      return current_->Save(inner_, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      current_.reset();
      HR_RETURN_IF_ERROR(RestoreInput(c, r, prefix(), "exhausted",
                                      dataset().input(), prefix(), &input_));
      if (!input_) return OkStatus();
      HR_ASSIGN_OR_RETURN(taken_, r.GetCount(prefix(), "element_index"));
      HR_ASSIGN_OR_RETURN(
          const bool closed,
          r.GetBool(prefix(), "current_element_iterator_uninitialized"));
      if (closed) return OkStatus();
      HR_ASSIGN_OR_RETURN(args_,
                          r.GetElement(prefix(), "inputs_size", "inputs"));
      HR_RETURN_IF_ERROR(CheckSaved(prefix(), dataset().input().spec(), args_));
      HR_RETURN_IF_ERROR(Open());
      return current_->Restore(inner_, r);
    }

   private:
    // The dataset of args_, the element before number taken_.
    Status Open() {
      // A copy, as the call takes its arguments over and the element goes into
      // states.
      Element args = args_;
      Status s = (*run_)(&args, &results_);
      if (!s.ok()) return dataset().f_->Blame(s, prefix());
      HR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetResult(results_));
      // Upstream names inner iterators by the number of the element, counted
      // from 0.
      HR_ASSIGN_OR_RETURN(
          current_, dataset->Iterate(
                        inner_, absl::StrCat(prefix(), "[", taken_ - 1, "]")));
      return OkStatus();
    }

    FunctionRunPtr run_;
    PullContext inner_;
    IteratorPtr current_;
    Element args_, results_;
    int64_t taken_ = 0;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
};

Status MakeFlatMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  return SetDataset<FlatMapDataset>(c, std::move(spec), std::move(input),
                                    std::move(f));
}

HR_OP(FlatMapDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("The datasets that a function makes, one behind another.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeFlatMap>);

}  // namespace
}  // namespace headrace
