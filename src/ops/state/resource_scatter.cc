// ResourceScatter*: a variable's rows; ResourceScatterNd*: its slices.
#include "base/cancellation.h"
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
    const StopHold whole;
    return ScatterRows(kind, c.input(1), c.input(2), value);
  });
}

template <ScatterKind kind>
Status Slices(KernelContext& c) {
  const std::string& policy = c.op().string_attr("bad_indices_policy");
  if (!policy.empty() && policy != "DEFAULT" && policy != "ERROR" &&
      policy != "IGNORE") {
    return InvalidArgument("Unknown bad indices handling attribute: ", policy);
  }
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  if (v.variable->dtype() != c.input(2).dtype()) {
    return InvalidArgument("DType of resource and updates does not match.");
  }
  return v.variable->Update(v.name, [&](Tensor& value) {
    const StopHold whole;
    return ScatterSlices(kind, c.input(1), c.input(2), policy == "IGNORE",
                         value);
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

#define HR_SCATTER(Name, kind, types, text) \
  HR_OP(Name)                               \
      .Input("resource: resource")          \
      .Input("indices: Tindices")           \
      .Input("updates: dtype")              \
      .Attr("dtype: " types)                \
      .Attr("Tindices: {int32, int64}")     \
      .Doc(text)                            \
      .Traits({OpTrait::kKeepsNoInput})     \
      .Stateful()                           \
      .Shape(NoOutputs)                     \
      .Cpu(ComputeFor<PickRows<ScatterKind::kind>>)

HR_SCATTER(ResourceScatterUpdate, kUpdate, "type", "Replaces rows.");
HR_SCATTER(ResourceScatterAdd, kAdd, "numbertype", "Adds to rows.");
HR_SCATTER(ResourceScatterSub, kSub, "numbertype", "Subtracts from rows.");
HR_SCATTER(ResourceScatterMul, kMul, "numbertype", "Multiplies rows.");
HR_SCATTER(ResourceScatterDiv, kDiv, "numbertype", "Divides rows.");
HR_SCATTER(ResourceScatterMin, kMin, "numbertype",
           "Replaces rows by the lesser of old and new.");
HR_SCATTER(ResourceScatterMax, kMax, "numbertype",
           "Replaces rows by the greater of old and new.");

#define HR_SCATTER_ND(Name, kind, text)        \
  HR_OP(Name)                                  \
      .Input("ref: resource")                  \
      .Input("indices: Tindices")              \
      .Input("updates: T")                     \
      .Attr("T: type")                         \
      .Attr("Tindices: {int32, int64}")        \
      .Attr("use_locking: bool = true")        \
      .Attr("bad_indices_policy: string = ''") \
      .Doc(text)                               \
      .Traits({OpTrait::kKeepsNoInput})        \
      .Stateful()                              \
      .Shape(NoOutputs)                        \
      .Cpu(ComputeFor<PickSlices<ScatterKind::kind>>)

HR_SCATTER_ND(ResourceScatterNdUpdate, kUpdate, "Replaces slices.");
HR_SCATTER_ND(ResourceScatterNdAdd, kAdd, "Adds to slices.");
HR_SCATTER_ND(ResourceScatterNdSub, kSub, "Subtracts from slices.");
HR_SCATTER_ND(ResourceScatterNdMin, kMin,
              "Replaces slices by the lesser of old and new.");
HR_SCATTER_ND(ResourceScatterNdMax, kMax,
              "Replaces slices by the greater of old and new.");

}  // namespace
}  // namespace headrace
