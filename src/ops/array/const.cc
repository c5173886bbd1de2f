// Values that come from the graph itself, and placeholders for those that do
// not.
#include "ops/array/forward_input.h"

namespace headrace {
namespace {

Status ConstShape(ShapeContext& c) {
  const Tensor& value = c.op().attr<Tensor>("value");
  if (value.dtype() != c.op().type_attr("dtype")) {
    return InvalidArgument("Const: value has type ", DTypeName(value.dtype()),
                           ", attr dtype says ",
                           DTypeName(c.op().type_attr("dtype")));
  }
  c.set_output(0, value.shape());
  return OkStatus();
}

class ConstKernel : public Kernel {
 public:
  explicit ConstKernel(const ResolvedOp& op)
      : value_(op.attr<Tensor>("value")) {}
  static StatusOr<std::unique_ptr<Kernel>> Make(const ResolvedOp& op) {
    const Tensor& value = op.attr<Tensor>("value");
    if (value.dtype() != op.type_attr("dtype")) {
      return InvalidArgument("Const: value has type ", DTypeName(value.dtype()),
                             ", attr dtype says ",
                             DTypeName(op.type_attr("dtype")));
    }
    // A proto whose content did not fit its dtype and shape.
    if (!value.has_buffer()) {
      return InvalidArgument("Cannot parse tensor from proto: ",
                             value.Describe());
    }
    return std::unique_ptr<Kernel>(std::make_unique<ConstKernel>(op));
  }
  Status Run(KernelContext& c) override {
    // The tensor itself: constants are shared, never copied.
    c.set_output(0, value_);
    return OkStatus();
  }
  bool own_outputs() const override { return true; }

 private:
  const Tensor value_;
};

HR_OP(Const)
    .Output("output: dtype")
    .Attr("value: tensor")
    .Attr("dtype: type")
    .Doc("Returns a constant tensor.")
    .Role(OpRole::kConstant)
    .Shape(ConstShape)
    .NoGradient()
    .Cpu(ConstKernel::Make);

Status PlaceholderShape(ShapeContext& c) {
  c.set_output(0, c.op().attr<Shape>("shape"));
  return OkStatus();
}

Status NotFed(KernelContext& c) {
  const ResolvedOp& op = c.op();
  const Shape& shape = op.attr<Shape>("shape");
  std::string dims = shape.known_rank() && shape.rank() > 0
                         ? absl::StrCat(" and shape ", shape.ToString())
                         : "";
  return InvalidArgument("You must feed a value for placeholder tensor '",
                         op.name(), "' with dtype ",
                         DTypeName(op.type_attr("dtype")), dims);
}

// In graphs of the first versions an empty shape meant an unknown one; the
// importer of old graphs says so, here a scalar is a scalar.
HR_OP(Placeholder)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape = { unknown_rank: true }")
    .Doc("A value that is fed when the graph runs.")
    .Role(OpRole::kPlaceholder)
    .Shape(PlaceholderShape)
    .Cpu(ComputeOwn<NotFed>);

HR_OP(PlaceholderV2)
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Deprecated(23, "Placeholder now behaves the same as PlaceholderV2.")
    .Doc("A value that is fed when the graph runs.")
    .Role(OpRole::kPlaceholder)
    .Shape(PlaceholderShape)
    .Cpu(ComputeOwn<NotFed>);

Status PlaceholderDefaultShape(ShapeContext& c) {
  const Shape& shape = c.op().attr<Shape>("shape");
  HR_RETURN_IF_ERROR(MergeShapes(shape, c.input(0)).status());
  c.set_output(0, shape);
  return OkStatus();
}

HR_OP(PlaceholderWithDefault)
    .Input("input: dtype")
    .Output("output: dtype")
    .Attr("dtype: type")
    .Attr("shape: shape")
    .Doc("The input, unless another value is fed.")
    .Role(OpRole::kPlaceholder)
    .Shape(PlaceholderDefaultShape)
    .Gradient(SameGradients)
    .GradientSkips({0}, {0})
    .View()
    .Cpu(ComputeOwn<ForwardInput>);

}  // namespace
}  // namespace headrace
