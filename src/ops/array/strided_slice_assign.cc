// Writing to a slice: into a copy of a tensor, or into a variable.
#include "base/cancellation.h"
#include "op/op.h"
#include "ops/array/strided_view.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

#define HR_SLICE_MASKS                \
  .Attr("begin_mask: int = 0")        \
      .Attr("end_mask: int = 0")      \
      .Attr("ellipsis_mask: int = 0") \
      .Attr("new_axis_mask: int = 0") \
      .Attr("shrink_axis_mask: int = 0")

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

HR_OP(TensorStridedSliceUpdate)
    .Input("input: T")
    .Input("begin: Index")
    .Input("end: Index")
    .Input("strides: Index")
    .Input("value: T")
    .Output("output: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}") HR_SLICE_MASKS
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

HR_OP(StridedSliceAssign)
    .Input("ref: Ref(T)")
    .Input("begin: Index")
    .Input("end: Index")
    .Input("strides: Index")
    .Input("value: T")
    .Output("output_ref: Ref(T)")
    .Attr("T: type")
    .Attr("Index: {int32, int64}") HR_SLICE_MASKS
    .Doc("Writes `value` over the elements of a slice of a variable.")
    .Shape(AssignRule)
    .Cpu(ComputeOwn<Assign>);

HR_OP(ResourceStridedSliceAssign)
    .Input("ref: resource")
    .Input("begin: Index")
    .Input("end: Index")
    .Input("strides: Index")
    .Input("value: T")
    .Attr("T: type")
    .Attr("Index: {int32, int64}") HR_SLICE_MASKS.Stateful()
    .Doc("Writes `value` over the elements of a slice of a variable.")
    .Shape(AssignRule)
    .Cpu(Compute<Assign>);

}  // namespace
}  // namespace headrace
