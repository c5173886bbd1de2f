// The Emitter that runs: every op at once, on concrete tensors.
#pragma once

#include "op/emitter.h"

namespace headrace {

// The process-wide eager emitter, which CurrentEmitter() falls back to.
// Thread-safe: it has no state but the kernels kept in ResolvedOps. Errors end
// in " [Op:Name]".
Emitter* EagerEmitter();

// Runs `op` on tensors; what EagerEmitter does without handles.
Status RunEagerly(const ResolvedOp& op, absl::Span<const Tensor* const> inputs,
                  absl::Span<Tensor> outputs);

// An op by name, run at once: for tests and tools.
StatusOr<std::vector<Tensor>> RunOp(StringView name,
                                    absl::Span<const Tensor> inputs,
                                    const AttrMap& attrs = {});

}  // namespace headrace
