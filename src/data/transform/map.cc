// MapDataset: a function of every element.
#include "data/dataset_op.h"

namespace headrace {
namespace {

class MapDataset : public InputDataset {
 public:
  MapDataset(ElementSpec spec, DatasetPtr input, CapturedFunctionPtr f)
      : InputDataset(std::move(spec), std::move(input)), f_(std::move(f)) {}
  StringView kind() const override { return "Map"; }

  class Iterator : public InputIterator<MapDataset> {
   public:
    using InputIterator::InputIterator;
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(run_, dataset().f_->Begin(c));
      return InputIterator::Start(c);
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      HR_RETURN_IF_ERROR(NextInput(c, &args_, end));
      if (*end) return OkStatus();
      Status s = (*run_)(&args_, out);
      // The end of a sequence that a function met is no end of this one.
      if (absl::IsOutOfRange(s)) {
        return InvalidArgument("Function invocation produced OutOfRangeError: ",
                               s.message());
      }
      return s;
    }

   private:
    FunctionRunPtr run_;
    Element args_;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr f_;
};

Status MakeMap(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetOf(c.input(0)));
  HR_ASSIGN_OR_RETURN(CapturedFunctionPtr f,
                      CapturedFunction::Make(c, "f", "other_arguments"));
  return SetDataset<MapDataset>(c, std::move(spec), std::move(input),
                                std::move(f));
}

HR_OP(MapDataset)
    .Input("input_dataset: variant")
    .Input("other_arguments: Targuments")
    .Output("handle: variant")
    .Attr("f: func")
    .Attr("Targuments: list(type) >= 0") HR_DATASET_SPEC
    .Attr("use_inter_op_parallelism: bool = true")
    .Attr("preserve_cardinality: bool = false")
    .Attr("force_synchronous: bool = false")
    .Attr("metadata: string = ''")
    .Doc("A function of every element.") HR_DATASET_END(MakeMap);

}  // namespace
}  // namespace headrace
