// What a thread has done with the results of every op that it emits.
#pragma once

#include "op/emitter.h"

namespace headrace {

// Sees the op's inputs, and may put other values in the place of its outputs.
// Its error is the op's. Not called for what it emits itself.
using AfterEmit = Status (*)(StringView op, absl::Span<const Value> inputs,
                             ValueList* outputs);

// This thread's; null, as it is at first: nothing is done.
void SetAfterEmit(AfterEmit f);
// Does it now: for calls that are not one emitted op.
Status TellAfterEmit(StringView op, absl::Span<const Value> inputs,
                     ValueList* outputs);

// Ops that hand numbers on and make none: no NaN or infinity begins in them.
bool NoteMovesNumbers(const char* op);
bool MovesNumbers(StringView op);

// HR_MOVES_NUMBERS(Transpose); at namespace scope, in the op's own file.
#define HR_MOVES_NUMBERS(Name)                                 \
  [[maybe_unused]] static const bool hr_moves_numbers_##Name = \
      ::headrace::NoteMovesNumbers(#Name)

}  // namespace headrace
