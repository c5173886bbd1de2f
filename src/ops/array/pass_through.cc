// Ops whose output is their input, with something said or checked beside it.
#include "op/no_such_gradient.h"
#include "op/vectorize.h"
#include "ops/array/forward_input.h"

namespace headrace {
namespace {

HR_OP(Snapshot)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Returns the input as it is now.")
    .Simplify(ForwardInputs)
    .Shape(SameShapes)
    .View()
    .Traits({OpTrait::kTakesLists})
    .Vectorize(VectorizeForward)
    .Cpu(ComputeOwn<ForwardInput>);

Status HandOnConst(KernelContext& c) {
  if (c.input(0).dtype() == DType::kResource) {
    return InvalidArgument(
        "Input tensor cannot be a resource variable handle.");
  }
  return ForwardInput(c);
}

HR_OP(GuaranteeConst)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Stateful()
    .Doc("Returns the input, which the caller says will never change.")
    .Shape(SameShapes)
    .View()
    .Cpu(ComputeOwn<HandOnConst>);

OpBuilder CopyOp(const char* name) {
  OpBuilder b(name);
  b.Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("tensor_name: string = ''")
      .Attr("debug_ops_spec: list(string) = []")
      .AllowsUninitialized()
      .Doc("Returns the input; a point to look at it.")
      .Shape(SameShapes)
      .View()
      .Cpu(ComputeOwn<ForwardInput>);
  return b;
}
[[maybe_unused]] const OpRegistrar kCopies[] = {
    CopyOp("Copy"),
    CopyOp("CopyHost"),
};

Status RefGradient(GradientContext& g) {
  g.set(0, g.raw_grad(0));
  return g.status();
}
HR_OP(RefIdentity)
    .Input("input: Ref(T)")
    .Output("output: Ref(T)")
    .Attr("T: type")
    .Traits({OpTrait::kHandsReferenceOn})
    .AllowsUninitialized()
    .Doc("Returns the reference, unchanged.")
    .Shape(SameShapes)
    .Gradient(RefGradient)
    .GradientSkips({0}, {0})
    .View()
    .Cpu(ComputeOwn<ForwardInput>);

Status DeepCopy(KernelContext& c) {
  // A buffer of its own, as it is written afterwards.
  CopyElements(c.input(0), c.output(0));
  return OkStatus();
}
HR_OP(DeepCopy)
    .Input("x: T")
    .Output("y: T")
    .Attr("T: type")
    .Stateful()
    .Doc("A copy of the input in memory of its own.")
    .Shape(SameShapes)
    .Cpu(Compute<DeepCopy>);

// Asking for the gradient is the error.
Status PreventGradientGradient(GradientContext& g) {
  return NoGradient("Gradient explicitly disabled. Reason: ",
                    g.op().string_attr("message"));
}
HR_OP(PreventGradient)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("message: string = ''")
    .Doc("Returns the input; differentiating through it is an error.")
    .Simplify(ForwardInputs)
    .Shape(SameShapes)
    .Gradient(PreventGradientGradient)
    .GradientSkips({0}, {0})
    .View()
    .Traits({OpTrait::kTakesLists})
    .Vectorize(VectorizeForward)
    .Cpu(ComputeOwn<ForwardInput>);

Status EnsureShapeRule(ShapeContext& c) {
  const Shape& wanted = c.op().attr<Shape>("shape");
  StatusOr<Shape> merged = MergeShapes(c.input(0), wanted);
  if (!merged.ok()) {
    return c.Refuse(wanted.rank() != c.input(0).rank()
                        ? RankIsNot(wanted.rank(), c.input(0).rank())
                        : NotMerged(wanted, c.input(0)),
                    InvalidArgument("Shape of tensor input ", c.input(0),
                                    " is not compatible with expected shape ",
                                    wanted, "."));
  }
  c.set_output(0, *std::move(merged));
  return OkStatus();
}
Status EnsureShape(KernelContext& c) {
  const Shape& wanted = c.op().attr<Shape>("shape");
  if (!wanted.CompatibleWith(c.input(0).shape())) {
    return InvalidArgument("Shape of tensor input ", c.input(0).shape(),
                           " is not compatible with expected shape ", wanted,
                           ".");
  }
  return ForwardInput(c);
}
Status EnsureShapeGradient(GradientContext& g) {
  // Dense, as upstream.
  g.set(0, g.grad());
  return g.status();
}
Status VectorizeEnsure(VectorizeContext& c) {
  Shape shape = c.op().attr<Shape>("shape");
  if (shape.rank() >= 0) shape.InsertDim(0, Shape::kUnknown);
  return c.SetAll(c.AgainWith({c.input(0)}, {{"shape", shape}}));
}

HR_OP(EnsureShape)
    .Input("input: T")
    .Output("output: T")
    .Attr("shape: shape")
    .Attr("T: type")
    .Doc("Returns the input if its shape agrees with `shape`.")
    .Shape(EnsureShapeRule)
    .Gradient(EnsureShapeGradient)
    .GradientSkips({0}, {0})
    .View()
    .Vectorize(VectorizeEnsure)
    .Cpu(ComputeOwn<EnsureShape>);

Status Nothing(KernelContext&) { return OkStatus(); }
HR_OP(NoOp)
    .Doc("Does nothing; others may wait for it.")
    .Shape(NoOutputs)
    .Cpu(Compute<Nothing>);

}  // namespace
}  // namespace headrace
