// What the ops that make datasets share.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "data/captured_function.h"
#include "data/dataset.h"
#include "data/state.h"
#include "op/op.h"

namespace headrace {

// The attributes that describe the elements of most of them.
inline constexpr char kOutputTypes[] = "output_types: list(type) >= 1";
inline constexpr char kOutputShapes[] = "output_shapes: list(shape) >= 1";

// The attributes output_types (or `types`) and output_shapes; InvalidArgument
// when they differ in length.
StatusOr<ElementSpec> SpecOf(const ResolvedOp& op,
                             StringView types = "output_types");
// Scalars of one dtype, as inputs and attributes of datasets are.
StatusOr<int64_t> IntInput(const KernelContext& c, int i, StringView name);
StatusOr<bool> BoolInput(const KernelContext& c, int i, StringView name);
StatusOr<std::string> TextInput(const KernelContext& c, int i, StringView name);
// A string scalar or vector.
StatusOr<std::vector<std::string>> TextsInput(const KernelContext& c, int i,
                                              StringView name);

// Sets all outputs of an op with an attribute output_types. InvalidArgument,
// with upstream's words, when the element does not fit output_types and
// output_shapes.
Status SetElement(KernelContext& c, Element element);
// Shape rule of ops whose outputs are an element of output_types and
// output_shapes.
Status ElementRule(ShapeContext& c);

// Output 0 holds the dataset; an error where it is too deep to walk along.
Status SetDataset(KernelContext& c, DatasetPtr dataset);
// Notes that the call `c` makes the new `dataset`.
void NoteCall(const KernelContext& c, const Dataset& dataset);
// The new D(args...).
template <typename D, typename... Args>
Status SetDataset(KernelContext& c, Args&&... args) {
  DatasetPtr dataset = MakeNested<const D>(std::forward<Args>(args)...);
  NoteCall(c, *dataset);
  return SetDataset(c, std::move(dataset));
}

// What an op lacks under the name that it had while it was experimental: for
// RegisterLike.
inline void WithoutMetadata(OpDef& def) {
  std::erase_if(def.attrs,
                [](const AttrDef& a) { return a.name == "metadata"; });
}

// A dataset of one input.
class InputDataset : public Dataset {
 public:
  InputDataset(ElementSpec spec, DatasetPtr input)
      : Dataset(std::move(spec)), input_(std::move(input)) {}
  std::vector<DatasetPtr> inputs() const override { return {input_}; }
  int64_t Count() const override { return input_->Cardinality(); }
  const Dataset& input() const { return *input_; }

 private:
  const DatasetPtr input_;
};

// The iterator of one; its input is given up at its end.
template <typename D>
class InputIterator : public IteratorOf<D> {
 public:
  using IteratorOf<D>::IteratorOf;
  Status Start(PullContext& c) override {
    HR_ASSIGN_OR_RETURN(input_,
                        this->dataset().input().Iterate(c, this->prefix()));
    return OkStatus();
  }
  Status Save(PullContext& c, StateWriter& w) override {
    return SaveInput(c, w, this->prefix(), "input_impl_empty", input_.get());
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    return RestoreInput(c, r, this->prefix(), "input_impl_empty",
                        this->dataset().input(), this->prefix(), &input_);
  }

 protected:
  // The input's next element; *end also when it was given up.
  Status NextInput(PullContext& c, Element* out, bool* end) {
    if (!input_) {
      *end = true;
      return OkStatus();
    }
    HR_RETURN_IF_ERROR(input_->Next(c, out, end));
    // The input's memory and threads go at its end and not with the iterator.
    if (*end) input_.reset();
    return OkStatus();
  }

  IteratorPtr input_;
};

// One whose input is kept at its end and always saved.
template <typename D>
class KeptInputIterator : public InputIterator<D> {
 public:
  using InputIterator<D>::InputIterator;
  Status Save(PullContext& c, StateWriter& w) override {
    return this->input_->Save(c, w);
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    ended_ = false;
    return this->input_->Restore(c, r);
  }

 protected:
  Status NextInput(PullContext& c, Element* out, bool* end) {
    if (!ended_) {
      HR_RETURN_IF_ERROR(this->input_->Next(c, out, end));
      ended_ = *end;
    }
    *end = ended_;
    return OkStatus();
  }

  bool ended_ = false;
};

}  // namespace headrace
