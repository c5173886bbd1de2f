// What comes before a kernel runs outside a plan.
#pragma once

#include <cstdint>

#include "op/kernel.h"
#include "op/shape_context.h"

namespace headrace {

// Runs the op's shape rule on what really came, its errors reported, and makes
// the outputs that the kernel does not make itself. ResourceExhausted for one
// of more than `most_bytes`.
inline Status PrepareOutputs(const ResolvedOp& op, const Kernel& kernel,
                             absl::Span<Tensor* const> inputs,
                             absl::Span<Tensor* const> outputs,
                             int64_t most_bytes = INT64_MAX) {
  if (op.def().shape_fn == nullptr) return OkStatus();
  absl::InlinedVector<const Shape*, 8> shapes(inputs.size());
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

}  // namespace headrace
