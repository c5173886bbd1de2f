// ResourceCountUpTo, CountUpTo: a counter with an end.
#include "ops/state/variable_access.h"

namespace headrace {
namespace {

Status CountUpTo(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(VariableInput v, VariableOf(c, 0));
  int64_t limit = c.op().int_attr("limit");
  return UpdateVariables(
      {v}, c.op().type_attr("T"), [&](absl::Span<Tensor*> values) -> Status {
        Tensor& t = *values[0];
        if (t.num_elements() != 1) {
          return InvalidArgument("input is not a scalar: ", t.shape());
        }
        // The counter stays at its limit and every further call fails; that is
        // how input loops of TensorFlow 1 end.
        if (t.IntAt(0) >= limit) {
          return OutOfRange("Reached limit of ", limit);
        }
        // The value before the step is the result.
        HR_RETURN_IF_ERROR(c.Allocate(0, Shape()));
        CopyElements(t, c.output(0));
        if (t.dtype() == DType::kInt32) {
          t.scalar<int32_t>() = static_cast<int32_t>(t.IntAt(0) + 1);
        } else {
          ++t.scalar<int64_t>();  // below limit: no overflow
        }
        return OkStatus();
      });
}

HR_OP(ResourceCountUpTo)
    .Input("resource: resource")
    .Output("output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .Doc("Adds one to a counter below `limit`; gives its value before.")
    .Stateful()
    .Shape(ScalarShape)
    .Cpu(Compute<CountUpTo>);

HR_OP(CountUpTo)
    .Input("ref: Ref(T)")
    .Output("output: T")
    .Attr("limit: int")
    .Attr("T: {int32, int64}")
    .Doc("Adds one to a counter below `limit`; gives its value before.")
    .Shape(ScalarShape)
    .Cpu(Compute<CountUpTo>);

}  // namespace
}  // namespace headrace
