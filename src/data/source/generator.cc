// GeneratorDataset: what a function gives, call by call, until it says that
// there is no more.
#include "base/guard.h"
#include "data/dataset_op.h"

namespace headrace {
namespace {

class GeneratorDataset : public Dataset {
 public:
  GeneratorDataset(ElementSpec spec, CapturedFunctionPtr init,
                   CapturedFunctionPtr next, CapturedFunctionPtr finalize)
      : Dataset(std::move(spec)),
        init_(std::move(init)),
        next_(std::move(next)),
        finalize_(std::move(finalize)) {}
  StringView kind() const override { return "Generator"; }

  class Iterator : public IteratorOf<GeneratorDataset> {
   public:
    using IteratorOf::IteratorOf;
    ~Iterator() override {
      if (!begun_ || finished_) return;
      // The end of a walk may be anywhere, and no exception may leave a
      // destructor.
      Guarded("ending a generator", [this] {
        Element state = state_, ignored;
        return (*finalize_)(&state, &ignored);
      }).IgnoreError();
    }
    Status Start(PullContext& c) override {
      HR_ASSIGN_OR_RETURN(next_, dataset().next_->Begin(c));
      HR_ASSIGN_OR_RETURN(finalize_, dataset().finalize_->Begin(c));
      return OkStatus();
    }
    Status Next(PullContext& c, Element* out, bool* end) override {
      if (!begun_) {
        HR_ASSIGN_OR_RETURN(FunctionRunPtr init, dataset().init_->Begin(c));
        Element none;
        HR_RETURN_IF_ERROR((*init)(&none, &state_));
        begun_ = true;
      }
      *end = finished_;
      if (finished_) return OkStatus();
      // A copy, as the call takes its arguments' vector over.
      Element state = state_;
      Status s = (*next_)(&state, out);
      if (s.ok()) return s;
      // OutOfRange is the end; after another error there is nothing more.
      finished_ = true;
      *end = absl::IsOutOfRange(s);
      Element last = state_, ignored;
      Status f = (*finalize_)(&last, &ignored);
      return *end ? f : s;
    }
    Status Save(PullContext& c, StateWriter& w) override {
      // A generator is a Python object in most cases, whose place no state can
      // hold.
      return Unimplemented("GeneratorDataset does not support checkpointing.");
    }
    Status Restore(PullContext& c, const StateReader& r) override {
      return Unimplemented("GeneratorDataset does not support checkpointing.");
    }

   private:
    FunctionRunPtr next_, finalize_;
    Element state_;
    bool begun_ = false, finished_ = false;
  };
  IteratorPtr NewIterator(std::string prefix) const override {
    return std::make_unique<Iterator>(this, std::move(prefix));
  }

 private:
  const CapturedFunctionPtr init_, next_, finalize_;
};

Status MakeGenerator(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr init,
      CapturedFunction::Make(c, "init_func", "init_func_other_args"));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr next,
      CapturedFunction::Make(c, "next_func", "next_func_other_args"));
  HR_ASSIGN_OR_RETURN(
      CapturedFunctionPtr finalize,
      CapturedFunction::Make(c, "finalize_func", "finalize_func_other_args"));
  return SetDataset<GeneratorDataset>(c, std::move(spec), std::move(init),
                                      std::move(next), std::move(finalize));
}

HR_OP(GeneratorDataset)
    .Input("init_func_other_args: Tinit_func_args")
    .Input("next_func_other_args: Tnext_func_args")
    .Input("finalize_func_other_args: Tfinalize_func_args")
    .Output("handle: variant")
    .Attr("init_func: func")
    .Attr("next_func: func")
    .Attr("finalize_func: func")
    .Attr("Tinit_func_args: list(type) >= 0")
    .Attr("Tnext_func_args: list(type) >= 0")
    .Attr("Tfinalize_func_args: list(type) >= 0")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("What a function gives, call by call.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeGenerator>);

}  // namespace
}  // namespace headrace
