// Values that are columns of a wider one: what Split and Slice cut off its last
// dimension.
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

}  // namespace headrace
