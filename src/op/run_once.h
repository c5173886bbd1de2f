// One op run outside a plan: eagerly, by frames, or to fold constants.
#pragma once

#include <cstdint>

#include "op/kernel.h"

namespace headrace {

// Runs the op's shape rule on what really came, makes the outputs that the
// kernel does not make itself, runs the kernel, and checks that what it made
// has the types that the op's signature says. All of it as RunAsKernel.
// ResourceExhausted, without running, for an output of more than `most_bytes`
// by the rule.
Status RunOnce(const ResolvedOp& op, Kernel& kernel,
               absl::Span<Tensor* const> inputs,
               absl::Span<Tensor* const> outputs, const RunServices& services,
               int64_t most_bytes = INT64_MAX);

}  // namespace headrace
