#include "op/run_once.h"

#include "absl/container/fixed_array.h"
#include "base/flush_denormals.h"
#include "op/rendezvous.h"
#include "op/run_kernel.h"
#include "op/shape_context.h"

namespace headrace {
namespace {

[[gnu::hot]] Status MakeOutputs(const ResolvedOp& op, const Kernel& kernel,
                                absl::Span<Tensor* const> inputs,
                                absl::Span<Tensor* const> outputs,
                                int64_t most_bytes) {
  if (op.def().shape_fn == nullptr) return OkStatus();
  absl::FixedArray<const Shape*, 8> shapes(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) shapes[i] = &inputs[i]->shape();
  ShapeContext c(op, shapes,
                 absl::Span<const Tensor* const>(inputs.data(), inputs.size()));
  HR_RETURN_IF_ERROR(RunShapeRule(c));
  if (kernel.own_outputs()) return OkStatus();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Shape& shape = c.output(static_cast<int>(o));
    if (!shape.fully_known()) continue;
    // What is computed with is a reference's value.
    const DType dtype = BaseType(op.output_types()[o]);
    int64_t bytes;
    if (most_bytes < INT64_MAX &&
        (!MultiplyChecked(shape.num_elements(),
                          static_cast<int64_t>(DTypeSize(dtype)), &bytes) ||
         bytes > most_bytes)) {
      return ResourceExhausted("a result of more than ", most_bytes, " bytes");
    }
    HR_ASSIGN_OR_RETURN(*outputs[o], Tensor::Allocate(dtype, shape));
  }
  return OkStatus();
}

[[gnu::cold]] Status WrongType(const ResolvedOp& op, size_t output,
                               DType made) {
  return InvalidArgument("op ", op.name(), ": a result of type ",
                         DTypeName(made), " where output ", output,
                         " has type ", DTypeName(op.output_types()[output]));
}

}  // namespace

[[gnu::hot]] Status RunOnce(const ResolvedOp& op, Kernel& kernel,
                            absl::Span<Tensor* const> inputs,
                            absl::Span<Tensor* const> outputs,
                            const RunServices& services, int64_t most_bytes) {
  const FlushDenormals flushed;
  KernelContext context(op, inputs.data(), outputs.data(), services);
  return RunAsKernel(context, [&](KernelContext& c) -> Status {
    HR_RETURN_IF_ERROR(MakeOutputs(op, kernel, inputs, outputs, most_bytes));
    HR_RETURN_IF_ERROR(kernel.Run(c));
    for (size_t o = 0; o < outputs.size(); ++o) {
      const DType said = op.output_types()[o];
      if (outputs[o]->dtype() == said || IsRef(said)) [[likely]]
        continue;
      // Nothing at all is a dead value.
      if (op.def().Is(kReceiveRole) && !outputs[o]->has_buffer()) continue;
      return WrongType(op, o, outputs[o]->dtype());
    }
    return OkStatus();
  });
}

}  // namespace headrace
