// WindowOp and ListDataset: elements that lie in memory.
#include "data/elements.h"

#include "data/dataset_op.h"

namespace headrace {
namespace {

class ElementsIterator : public IteratorOf<ElementsDataset> {
 public:
  using IteratorOf::IteratorOf;
  Status Next(PullContext& c, Element* out, bool* end) override {
    *end = at_ >= dataset().Cardinality();
    if (!*end) *out = dataset().elements()[at_++];
    return OkStatus();
  }
  Status Skip(PullContext& c, int64_t n, int64_t* skipped) override {
    // Skipping is one addition, as all elements are there.
    *skipped = std::min(n, dataset().Cardinality() - at_);
    at_ += *skipped;
    return OkStatus();
  }
  Status Save(PullContext& c, StateWriter& w) override {
    w.PutInt(prefix(), Key(), at_);
    // Upstream's ListDataset saves this key, too.
    if (dataset().kind() == "List") {
      w.PutInt(prefix(), "global_shuffle_iterator_next_index", 0);
    }
    return OkStatus();
  }
  Status Restore(PullContext& c, const StateReader& r) override {
    HR_ASSIGN_OR_RETURN(at_, r.GetInt(prefix(), Key()));
    if (at_ < 0 || at_ > dataset().Cardinality()) {
      return InvalidArgument("the saved iterator was at element ", at_, " of ",
                             dataset().Cardinality());
    }
    return OkStatus();
  }

 private:
  std::string Key() const {
    return dataset().kind() == "List" ? FullKey(prefix(), "index") : "i";
  }
  int64_t at_ = 0;
};

// The inputs are the components of the elements, element by element.
Status MakeElements(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(ElementSpec spec, SpecOf(c.op()));
  const int width = static_cast<int>(spec.types.size());
  if (c.num_inputs() % width != 0) {
    return InvalidArgument(c.op().name(), ": ", c.num_inputs(),
                           " tensors are no elements of ", width,
                           " components");
  }
  std::vector<Element> elements;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (i % width == 0) elements.emplace_back();
    if (c.input(i).dtype() != spec.types[i % width]) {
      return InvalidArgument(c.op().name(), ": input ", i, " is a ",
                             DTypeName(c.input(i).dtype()), ", expected ",
                             DTypeName(spec.types[i % width]));
    }
    elements.back().push_back(c.input(i));
  }
  return SetDataset<ElementsDataset>(c, std::move(spec), std::move(elements),
                                     c.op().name() == "ListDataset");
}

HR_OP(WindowOp)
    .Input("inputs: Tinputs")
    .Output("handle: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("Tinputs: list(type) >= 1")
    .Doc("A dataset of elements given one by one.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeElements>);

HR_OP(ListDataset)
    .Input("tensors: Tinput_types")
    .Output("handle: variant")
    .Attr("Tinput_types: list(type) >= 1")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Attr("metadata: string = ''")
    .Doc("A dataset of elements given one by one.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<MakeElements>);

}  // namespace

StatusOr<ElementReaderPtr> ElementsDataset::Reader(PullContext&) const {
  auto self =
      std::static_pointer_cast<const ElementsDataset>(shared_from_this());
  return ReaderOf([self](PullContext&, int64_t i, Element* out) {
    *out = self->elements()[i];
    return OkStatus();
  });
}

IteratorPtr ElementsDataset::NewIterator(std::string prefix) const {
  return std::make_unique<ElementsIterator>(this, std::move(prefix));
}

}  // namespace headrace
