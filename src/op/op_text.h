// An op's definition as one line of text, for messages.
#pragma once

#include <string>

#include "op/op_def.h"

namespace headrace {

// "Op<name=Neg; signature=x:T -> y:T; attr=T:type,allowed=[DT_HALF, ...]>":
// upstream's form.
std::string OpDefSummary(const OpDef& def);

// An attribute's value in upstream's text: "DT_FLOAT", "\"SAME\"", "[1, 2]",
// "[2,?]" (a shape), "Tensor<type: float shape: [2]>".
std::string AttrValueText(const AttrValue& v);

}  // namespace headrace
