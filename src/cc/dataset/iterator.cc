// Going along a dataset, and saving the place.
#include "cc/dataset/state.h"
#include "data/iterate/iterator_resource.h"
#include "op/resource.h"
#include "train/trackable.h"

namespace headrace::tf::data {

using internal::Access;
using internal::Check;

namespace {

constexpr char kPlace[] = "ITERATOR_STATE";

std::shared_ptr<IteratorResource> ResourceOf(const Tensor& handle) {
  return Check(ResourceAs<IteratorResource>(Access::ValueOf(handle).tensor(),
                                            &DefaultResources()));
}

// An iterator as checkpoints see it, as Python's is.
class IteratorNode : public Trackable {
 public:
  explicit IteratorNode(std::shared_ptr<IteratorResource> iterator)
      : iterator_(std::move(iterator)) {}

  bool has_values() const override { return true; }
  StatusOr<std::vector<ValueSpec>> Specs() const override {
    return std::vector<ValueSpec>{{.name = kPlace,
                                   .dtype = headrace::DType::kVariant,
                                   .attribute = "ITERATOR"}};
  }
  StatusOr<std::vector<headrace::Tensor>> Read() const override {
    HR_ASSIGN_OR_RETURN(headrace::Tensor state, iterator_->Save());
    return std::vector<headrace::Tensor>{std::move(state)};
  }
  Status Write(absl::Span<const headrace::Tensor> values) override {
    // A checkpoint without the iterator's place leaves it where it is.
    if (!values[0].has_buffer()) return OkStatus();
    return iterator_->Restore(values[0]);
  }

 private:
  const std::shared_ptr<IteratorResource> iterator_;
};

}  // namespace

struct Iterator::State {
  Dataset dataset;
  Tensor handle;
  std::shared_ptr<IteratorResource> resource;

  static std::shared_ptr<State> Begin(const Dataset& dataset) {
    if (dataset.variant().is_symbolic()) {
      internal::Throw(ErrorCode::kFailedPrecondition,
                      "a dataset of a traced function cannot be gone along");
    }
    internal::Outside outside;
    const Tensor handle = internal::Op("AnonymousIteratorV3", {},
                                       internal::AttrsOf(dataset.spec()));
    internal::OpAll("MakeIterator", {dataset.variant(), handle});
    return std::make_shared<State>(State{dataset, handle, ResourceOf(handle)});
  }
};

Iterator::Iterator(const Dataset& dataset) : Iterator(State::Begin(dataset)) {}
Iterator::Iterator(std::shared_ptr<State> state)
    : Module(std::make_shared<IteratorNode>(state->resource)),
      state_(std::move(state)) {}
Iterator::~Iterator() = default;

bool Iterator::Next(Element* element) {
  headrace::Element found;
  bool end = false;
  Check(state_->resource->Next(&found, &end));
  element->clear();
  if (end) return false;
  for (headrace::Tensor& t : found) {
    element->push_back(Access::Wrap(Value(std::move(t))));
  }
  return true;
}

ElementIterator Dataset::begin() const { return ElementIterator(*this); }

ElementIterator::ElementIterator(const Dataset& dataset)
    : iterator_(std::make_unique<Iterator>(dataset)) {
  ++*this;
}

ElementIterator& ElementIterator::operator++() {
  if (!at_end_) at_end_ = !iterator_->Next(&element_);
  return *this;
}

}  // namespace headrace::tf::data
