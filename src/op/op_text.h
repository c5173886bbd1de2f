// An op's definition as one line of text, for messages.
#pragma once

#include <string>

#include "op/op_def.h"

namespace headrace {

// "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_HALF, ...]>":
// upstream's form.
std::string OpDefSummary(const OpDef& def);

}  // namespace headrace
