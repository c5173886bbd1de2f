// Turns of a loop that are few, short and of a number that the plan knows,
// written out in the plan.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace headrace {

struct UnrolledLoop {
  std::vector<Call> calls;       // in order, to stand where the loop stood
  std::vector<ValueId> results;  // in place of the loop's outputs
};

// Of the loop `call` of `p`, which goes on while `cond` says so of what `body`
// makes; both have their loops planned. Nothing, and `p` as it was, where
// constants do not say how many turns there are, where these would make the
// plan longer than they save, or where some call of a turn has effects, calls
// a function or might fail: errors name the loop.
std::optional<UnrolledLoop> UnrollLoop(Program& p, const Call& call,
                                       const Program& cond,
                                       const Program& body);

// Writes it in place of call number `at`.
void PutUnrolled(Program& p, size_t at, UnrolledLoop loop);

}  // namespace headrace
