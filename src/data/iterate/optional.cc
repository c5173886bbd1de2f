// Optionals: a value that may be missing, as iterators give at their end.
#include "data/dataset_op.h"
#include "data/iterate/iterator_resource.h"
#include "op/waiting.h"

namespace headrace {
namespace {

// An optional value: what a variant of it holds.
class Optional : public VariantValue {
 public:
  Optional() = default;
  explicit Optional(Element element)
      : element_(std::move(element)), has_(true) {}
  StringView type_name() const override { return "tensorflow::data::Optional"; }
  bool has_value() const { return has_; }
  const Element& element() const { return element_; }
  StatusOr<std::shared_ptr<const VariantValue>> ZerosLike() const override {
    auto zero = std::make_shared<Optional>();
    zero->has_ = has_;
    for (const Tensor& t : element_) {
      if (!IsPlain(t.dtype())) return VariantValue::ZerosLike();
      HR_ASSIGN_OR_RETURN(Tensor z, Tensor::Allocate(t.dtype(), t.shape()));
      FillZero(z);
      zero->element_.push_back(std::move(z));
    }
    return std::shared_ptr<const VariantValue>(std::move(zero));
  }

 private:
  Element element_;
  bool has_ = false;
};

template <typename... Args>
void SetOptional(KernelContext& c, Args&&... args) {
  c.set_output(0, Tensor::Scalar(Variant(std::make_shared<const Optional>(
                      std::forward<Args>(args)...))));
}

StatusOr<std::shared_ptr<const Optional>> OptionalInput(
    const KernelContext& c) {
  const Tensor& t = c.input(0);
  if (t.rank() == 0) {
    auto o =
        std::dynamic_pointer_cast<const Optional>(t.scalar<Variant>().value());
    if (o) return o;
  }
  return InvalidArgument("The given variant tensor is not an Optional: ",
                         t.Describe());
}

Status FromValue(KernelContext& c) {
  Element element;
  for (int i = 0; i < c.num_inputs(); ++i) element.push_back(c.input(i));
  SetOptional(c, std::move(element));
  return OkStatus();
}

Status None(KernelContext& c) {
  SetOptional(c);
  return OkStatus();
}

Status HasValue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto optional, OptionalInput(c));
  c.set_output(0, Tensor::Scalar<bool>(optional->has_value()));
  return OkStatus();
}

Status GetValue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto optional, OptionalInput(c));
  if (!optional->has_value()) {
    return InvalidArgument("The given optional does not have a value.");
  }
  return SetElement(c, optional->element());
}

Status GetNextAsOptional(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(auto iterator, ResourceAs<IteratorResource>(
                                         c.input(0), c.services().resources));
  Element element;
  bool end = false;
  HR_RETURN_IF_ERROR(iterator->Next(&element, &end));
  // The end is a value here, no error.
  if (end) return None(c);
  SetOptional(c, std::move(element));
  return OkStatus();
}

Status FromValueGradient(GradientContext& g) {
  std::vector<DType> types;
  std::vector<Shape> shapes;
  for (const Value& v : g.inputs()) {
    types.push_back(v.dtype());
    shapes.push_back(v.shape());
  }
  ValueList parts =
      g.All("OptionalGetValue", {g.grad()},
            {{"output_types", types}, {"output_shapes", std::move(shapes)}});
  for (size_t i = 0; i < parts.size(); ++i) {
    g.set(static_cast<int>(i), std::move(parts[i]));
  }
  return g.status();
}

Status GetValueGradient(GradientContext& g) {
  ValueList parts;
  for (int i = 0; i < g.num_outputs(); ++i) parts.push_back(g.grad_or_zeros(i));
  g.set(0, g("OptionalFromValue", parts));
  return g.status();
}

HR_OP(OptionalFromValue)
    .Input("components: Toutput_types")
    .Output("optional: variant")
    .Attr("Toutput_types: list(type) >= 1")
    .Doc("An optional with a value.")
    .Gradient(FromValueGradient)
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<FromValue>);

HR_OP(OptionalNone)
    .Output("optional: variant")
    .Doc("An optional without a value.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<None>);

HR_OP(OptionalHasValue)
    .Traits({OpTrait::kNeverWaits})
    .Input("optional: variant")
    .Output("has_value: bool")
    .Doc("Whether an optional has a value.")
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<HasValue>);

HR_OP(OptionalGetValue)
    .Input("optional: variant")
    .Output("components: output_types")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The value of an optional.")
    .Shape(ElementRule)
    .Gradient(GetValueGradient)
    .Cpu(ComputeOwn<GetValue>);

HR_OP(IteratorGetNextAsOptional)
    .Traits({kMayWait})
    .Input("iterator: resource")
    .Output("optional: variant")
    .Attr(kOutputTypes)
    .Attr(kOutputShapes)
    .Doc("The next element, or an optional without a value at the end.")
    .Stateful()
    .NoGradient()
    .Shape(ScalarShape)
    .Cpu(ComputeOwn<GetNextAsOptional>);

}  // namespace
}  // namespace headrace
