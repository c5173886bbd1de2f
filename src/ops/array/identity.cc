// Ops that hand their input on.
#include "op/passes/partial_sizes.h"
#include "op/vectorize.h"
#include "ops/array/forward_input.h"

namespace headrace {
Status ForwardInput(KernelContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return OkStatus();
}

Status SameShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, c.input(i));
    if (const HandleData* data = c.input_handle(i)) {
      c.set_output_handle(i, *data);
    }
  }
  return OkStatus();
}

Status SameGradients(GradientContext& g) {
  for (int i = 0; i < g.num_inputs(); ++i) g.set(i, g.raw_grad(i));
  return g.status();
}

Status ForwardInputs(SimplifyContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    // A reference is to a variable: who reads it must see what it holds then.
    if (IsRef(c.input_dtype(i))) return c.status();
  }
  for (int i = 0; i < c.num_inputs(); ++i) c.Replace(i, c.input(i));
  return c.status();
}

namespace {

HR_OP(Identity)
    .PartialSizes(SizesOfInput)
    .Traits({OpTrait::kMovesNumbers, OpTrait::kIdentity, OpTrait::kTakesLists})
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Returns the input, unchanged.")
    .Simplify(ForwardInputs)
    .Shape(SameShapes)
    .Gradient(SameGradients)
    .GradientSkips({0}, {0})
    .View()
    .Vectorize(VectorizeForward)
    .Cpu(ComputeOwn<ForwardInput>);

HR_OP(IdentityN)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: list(type) >= 1")
    .Doc("Returns the inputs, unchanged.")
    .Simplify(ForwardInputs)
    .Shape(SameShapes)
    .Gradient(SameGradients)
    .Traits({OpTrait::kTakesLists})
    .Vectorize(VectorizeForward)
    .Cpu(ComputeOwn<ForwardInput>);

HR_OP(StopGradient)
    .Input("input: T")
    .Output("output: T")
    .Attr("T: type")
    .Doc("Returns the input; no gradient flows through it.")
    .Simplify(ForwardInputs)
    .Shape(SameShapes)
    .NoGradient()
    .View()
    .Traits({OpTrait::kTakesLists})
    .Vectorize(VectorizeForward)
    .Cpu(ComputeOwn<ForwardInput>);

}  // namespace
}  // namespace headrace
