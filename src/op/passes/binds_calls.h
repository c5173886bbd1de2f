// Kernels of which a call can be bound to shapes and memory once and for all:
// a turn of a loop on small values is a list of such calls, with no contexts,
// slots or checks between them (runtime/bound_turns.h).
#pragma once

#include "absl/types/span.h"
#include "op/kernel.h"
#include "op/passes/bound_call.h"

namespace headrace {

// What is known of an input when a call is bound.
struct BoundInput {
  const Shape* shape;      // fully known
  const Tensor* constant;  // its value, or null
  // The same in every turn, and so repeated that it fills its last block.
  bool steady;
};

// An interface of kernels, beside Kernel. Thread-safe.
class BindsCalls {
 public:
  virtual ~BindsCalls() = default;
  // Sets `run`, `loop`, `n` and `kind` so that the call makes output 0 of shape
  // `output`, which has elements, with the bits of Kernel::Run. False where
  // there is no such call for these shapes. No output lies over an input.
  virtual bool BindTo(absl::Span<const BoundInput> inputs, const Shape& output,
                      BoundCall* call) const = 0;
  // Whether a call of these may leave an `error`, and what Kernel::Run says of
  // it.
  virtual bool may_fail(absl::Span<const BoundInput> inputs) const {
    return false;
  }
  virtual Status Failure(const ResolvedOp& op, const BoundCall& call) const {
    return Internal(op.name(), " cannot fail");
  }
};

}  // namespace headrace
