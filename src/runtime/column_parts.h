// Values that are columns of a wider one: what Split and Slice cut off its last
// dimension, and what Concat joins there.
#pragma once

#include <vector>

#include "runtime/program.h"

namespace headrace {

// Elements [first, first + its own last dimension) of each row of `whole`,
// whose rows have `width` elements.
struct ColumnPart {
  ValueId whole = kNoValue;  // or none: it is no such part
  int64_t first = 0, width = 0;
};

// Per value of `p`, where that is known for certain.
std::vector<ColumnPart> ColumnParts(const Program& p);

// What `call` joins along the last dimension, in order: at least two values,
// all of one known shape; empty for other calls.
std::vector<ValueId> JoinedColumns(const Program& p, const Call& call);

}  // namespace headrace
