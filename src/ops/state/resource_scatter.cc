// ResourceScatter*: a variable's rows; ResourceScatterNd*: its slices.
#include "base/cancellation.h"
#include "ops/array/index/nd_index.h"
#include "ops/state/scatter.h"
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

template <ScatterKind kind>
Status Rows(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  if (v.variable->dtype() != c.input(2).dtype()) {
    return InvalidArgument(
        "DType of scatter resource and updates does not "
        "match.");
  }
  return v.variable->Update(v.name, [&](Tensor& value) {
    // A stop in the middle would leave some rows changed and others not.
    const StopHold whole;
    return ScatterRows(kind, c.input(1), c.input(2), value);
  });
}

template <ScatterKind kind>
Status Slices(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const BadIndices policy, BadIndicesPolicy(c.op()));
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  if (v.variable->dtype() != c.input(2).dtype()) {
    return InvalidArgument("DType of resource and updates does not match.");
  }
  return v.variable->Update(v.name, [&](Tensor& value) {
    const StopHold whole;
    return ScatterSlices(kind, c.input(1), c.input(2),
                         policy == BadIndices::kIgnore, value);
  });
}

template <ScatterKind kind>
ComputeFn PickRows(const ResolvedOp& op) {
  return ScatterSupports(kind, op.type_attr("dtype")) ? Rows<kind> : nullptr;
}
template <ScatterKind kind>
ComputeFn PickSlices(const ResolvedOp& op) {
  return ScatterSupports(kind, op.type_attr("T")) ? Slices<kind> : nullptr;
}

template <ScatterKind kKind>
OpBuilder ScatterOp(const char* name, const char* types, const char* doc) {
  OpBuilder b(name);
  b.Input("resource: resource")
      .Input("indices: Tindices")
      .Input("updates: dtype")
      .Attr(types)
      .Attr("Tindices: {int32, int64}")
      .Doc(doc)
      .Traits({OpTrait::kKeepsNoInput})
      .Stateful()
      .Shape(NoOutputs)
      .Cpu(ComputeFor<PickRows<kKind>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kScatters[] = {
    ScatterOp<ScatterKind::kUpdate>("ResourceScatterUpdate", "dtype: type",
                                    "Replaces rows."),
    ScatterOp<ScatterKind::kAdd>("ResourceScatterAdd", "dtype: numbertype",
                                 "Adds to rows."),
    ScatterOp<ScatterKind::kSub>("ResourceScatterSub", "dtype: numbertype",
                                 "Subtracts from rows."),
    ScatterOp<ScatterKind::kMul>("ResourceScatterMul", "dtype: numbertype",
                                 "Multiplies rows."),
    ScatterOp<ScatterKind::kDiv>("ResourceScatterDiv", "dtype: numbertype",
                                 "Divides rows."),
    ScatterOp<ScatterKind::kMin>("ResourceScatterMin", "dtype: numbertype",
                                 "Replaces rows by the lesser of old and new."),
    ScatterOp<ScatterKind::kMax>(
        "ResourceScatterMax", "dtype: numbertype",
        "Replaces rows by the greater of old and new."),
};

template <ScatterKind kKind>
OpBuilder ScatterNdOp(const char* name, const char* doc) {
  OpBuilder b(name);
  b.Input("ref: resource")
      .Input("indices: Tindices")
      .Input("updates: T")
      .Attr("T: type")
      .Attr("Tindices: {int32, int64}")
      .Attr("use_locking: bool = true")
      .Attr("bad_indices_policy: string = ''")
      .Doc(doc)
      .Traits({OpTrait::kKeepsNoInput})
      .Stateful()
      .Shape(NoOutputs)
      .Cpu(ComputeFor<PickSlices<kKind>>);
  return b;
}

[[maybe_unused]] const OpRegistrar kScatterNds[] = {
    ScatterNdOp<ScatterKind::kUpdate>("ResourceScatterNdUpdate",
                                      "Replaces slices."),
    ScatterNdOp<ScatterKind::kAdd>("ResourceScatterNdAdd", "Adds to slices."),
    ScatterNdOp<ScatterKind::kSub>("ResourceScatterNdSub",
                                   "Subtracts from slices."),
    ScatterNdOp<ScatterKind::kMin>(
        "ResourceScatterNdMin",
        "Replaces slices by the lesser of old and new."),
    ScatterNdOp<ScatterKind::kMax>(
        "ResourceScatterNdMax",
        "Replaces slices by the greater of old and new."),
};

}  // namespace
}  // namespace headrace
