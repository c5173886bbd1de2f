// What a thread has done with the results of every op that it emits.
#pragma once

#include "op/emitter.h"

namespace headrace {

// `op`: null for what is not one emitted op (a function's call, `name`). Sees
// its inputs, and may put other values in the place of its outputs. Its error
// is the op's. Not called for what it emits itself.
using AfterEmit = Status (*)(const OpDef* op, StringView name,
                             absl::Span<const Value> inputs,
                             ValueList* outputs);

// This thread's; null, as it is at first: nothing is done.
void SetAfterEmit(AfterEmit f);
// Does it now.
Status TellAfterEmit(const OpDef* op, StringView name,
                     absl::Span<const Value> inputs, ValueList* outputs);

}  // namespace headrace
