// Kernels of which a call looks at its operands' elements one by one, at
// indices that other operands hold: x[i] in the turns of a loop
// (runtime/bound_turns.h).
#pragma once

#include <memory>

#include "op/passes/binds_calls.h"

namespace headrace {

// What such a call knows beyond its BoundCall, which lives no longer.
// Immutable.
class IndexedCall {
 public:
  virtual ~IndexedCall() = default;
  // Whether the call may leave an `error`, and what the shape rule or
  // Kernel::Run says of the operands that it has then.
  virtual bool may_fail() const = 0;
  virtual Status Failure(const BoundCall& call) const = 0;
  // The inputs that BoundCall::in are, in order: at most three.
  absl::InlinedVector<int, 3> operands;
};

// An interface of kernels, beside Kernel. Thread-safe.
class BindsIndexed {
 public:
  virtual ~BindsIndexed() = default;
  // Sets `run`, `loop`, `n` and `kind` so that the call makes output 0 of shape
  // `output`, which has elements, with the bits of Kernel::Run, or leaves an
  // error where the shape rule or Run has one: whatever the values are of
  // inputs that are not constants, it makes no other shape. It touches no
  // element but the operands' own, so they may be large. Null where there is
  // no such call for these shapes and constants.
  virtual std::unique_ptr<const IndexedCall> BindIndexed(
      absl::Span<const BoundInput> inputs, const Shape& output,
      BoundCall* call) const = 0;
};

}  // namespace headrace
