// ScanDataset: a function of a state and each element in turn.
#include "data/dataset_op.h"
#include "op/op_like.h"

namespace headrace {
namespace {

class ScanDataset : public InputDataset {
 public:
  ScanDataset(ElementSpec spec, DatasetPtr input, Element initial,
              CapturedFunctionPtr f)
      : InputDataset(std::move(spec), std::move(input)),
        initial_(std::move(initial)),
        f_(std::move(f)) {}
  StringView kind() const override { return "Scan"; }

  class Iterator : public KeptInputIterator<ScanDataset> {
   public:
    Iterator(const ScanDataset* d, std::string prefix)
        : KeptInputIterator(d, std::move(prefix)), state_(d->initial_) {}
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f_->Begin(c));
      return KeptInputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      Element element;
      HR_RETURN_IF_ERROR(NextInput(c, &element, end));
      if (*end) return OkStatus();
      Element args = state_, results;
      for (Tensor& t : element) args.push_back(std::move(t));
      HR_RETURN_IF_ERROR((*run_)(&args, &results));
      const size_t n = state_.size();
      if (results.size() < n) {
        return InvalidArgument("a scan with ", n, " values of state returned ",
                               results.size());
      }
      for (size_t i = 0; i < n; ++i) {
        if (results[i].dtype() != state_[i].dtype()) {
          return InvalidArgument("Got wrong type for scan_func return value ",
                                 i, " (expected ", DTypeName(state_[i].dtype()),
                                 ", got ", DTypeName(results[i].dtype()), ").");
        }
        // Only the type is held to: the shape of a state may change from step
        // to step, as upstream.
        state_[i] = std::move(results[i]);
      }
      out->assign(std::make_move_iterator(results.begin() + n),
                  std::make_move_iterator(results.end()));
      return OkStatus();
    }
    Status Save(PullContext& c, StateWriter& w) override {
      HR_RETURN_IF_ERROR(w.PutElement(prefix(), FullKey(prefix(), "state_size"),
                                      FullKey(prefix(), "state"), state_));
      return KeptInputIterator::Save(c, w);
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      HR_ASSIGN_OR_RETURN(
          state_, r.GetElement(prefix(), FullKey(prefix(), "state_size"),
                               FullKey(prefix(), "state")));
      bool fits = state_.size() == dataset().initial_.size();
      for (size_t i = 0; fits && i < state_.size(); ++i) {
        fits = state_[i].dtype() == dataset().initial_[i].dtype();
      }
      return fits ? KeptInputIterator::Restore(c, r) : DamagedState(prefix());
    }

   private:
    FunctionRunPtr run_;
    Element state_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const Element initial_;
  const CapturedFunctionPtr f_;
};

Status MakeScan(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  Element initial;
  const ArgRange range = c.op().input_range("initial_state");
  for (int i = range.begin; i < range.end; ++i) initial.push_back(c.input(i));
  return SetDataset<ScanDataset>(c, std::move(spec), std::move(input),
                                 std::move(initial), std::move(f));
}

HR_OP(ScanDataset)
    .Input("input_dataset: variant")
    .Input("initial_state: Tstate")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Tstate: list(type) >= 1")
    .Attr("Targuments: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("preserve_cardinality: bool = false")
    .Attr("use_default_device: bool = true")
    .Attr("metadata: string = ''")
    .Doc("A function of a state and each element in turn.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeScan>);

[[maybe_unused]] const bool kExperimentalScan =
    RegisterLike("ExperimentalScanDataset", "ScanDataset", [](OpDef& def) {
      WithoutMetadata(def);
      std::erase_if(def.attrs, [](const AttrDef& a) {
        return a.name == "use_default_device";
      });
    });

}  // namespace
}  // namespace headrace
