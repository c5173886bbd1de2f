// Writing to a slice: into a copy of a tensor, or into a variable.
#include "base/cancellation.h"
#include "op/op.h"
#include "ops/array/slice/strided_view.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

Status UpdateRule(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckSliceIndices(c.input(1), c.input(2), c.input(3)));
  c.set_output(0, c.input(0));
  return OkStatus();
}

Status Update(KernelContext& c) {
  const SliceMasks masks(c.op());
  Tensor& out = c.output(0);
  if (out.raw() != c.input(0).raw()) CopyElements(c.input(0), out);
  HR_ASSIGN_OR_RETURN(
      StridedView view,
      ResolveSlice(masks, c.input(1), c.input(2), c.input(3), out.shape()));
  return CopyIntoView(view, c.input(4), out);
}

Status SliceUpdateGradient(GradientContext& g) {
  Value dy = g.grad();
  const Value &begin = g.input(1), &end = g.input(2), &strides = g.input(3);
  const AttrMap masks = MaskAttrs(g.op());
  Value dvalue = g("StridedSlice", {dy, begin, end, strides}, masks);
  Value zero = g.Scalar(dy ? dy.dtype() : DType::kFloat, 0);
  g.set(0,
        g("TensorStridedSliceUpdate", {dy, begin, end, strides, zero}, masks));
  if (g.ok()) g.set(4, g.ReduceTo(dvalue, g.input(4)));
  return g.status();
}

[[maybe_unused]] const OpRegistrar kTensorStridedSliceUpdate =
    SliceOp("TensorStridedSliceUpdate", "input: T", "value: T", "output: T",
            "Index: {int32, int64}")
        .Doc("The input with `value` written over the elements of a slice.")
        .Shape(UpdateRule)
        .Gradient(SliceUpdateGradient)
        .GradientSkips({0}, {0})
        .InPlace({0})
        .Cpu(Compute<Update>);

Status AssignRule(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return CheckSliceIndices(c.input(1), c.input(2), c.input(3));
}

// Input 0 is a variable's handle; a reference of TensorFlow 1 is one as well
// when the graph runs, and is handed on.
Status Assign(KernelContext& c) {
  const SliceMasks masks(c.op());
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  HR_RETURN_IF_ERROR(CheckReferred(v));
  const Tensor& value = c.input(4);
  HR_RETURN_IF_ERROR(v.variable->Update(v.name, [&](Tensor& t) -> Status {
    const StopHold whole;
    if (t.dtype() != value.dtype()) {
      return InvalidArgument("l-value dtype ", DTypeName(t.dtype()),
                             " does not match r-value dtype ",
                             DTypeName(value.dtype()));
    }
    HR_ASSIGN_OR_RETURN(
        StridedView view,
        ResolveSlice(masks, c.input(1), c.input(2), c.input(3), t.shape()));
    return CopyIntoView(view, value, t);
  }));
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return OkStatus();
}

[[maybe_unused]] const OpRegistrar kStridedSliceAssign =
    SliceOp("StridedSliceAssign", "ref: Ref(T)", "value: T",
            "output_ref: Ref(T)", "Index: {int32, int64}")
        .Doc("Writes `value` over the elements of a slice of a variable.")
        .Shape(AssignRule)
        .Cpu(ComputeOwn<Assign>);

[[maybe_unused]] const OpRegistrar kResourceStridedSliceAssign =
    SliceOp("ResourceStridedSliceAssign", "ref: resource", "value: T", nullptr,
            "Index: {int32, int64}")
        .Stateful()
        .Doc("Writes `value` over the elements of a slice of a variable.")
        .Shape(AssignRule)
        .Cpu(Compute<Assign>);

}  // namespace
}  // namespace headrace
