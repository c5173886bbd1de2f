// What ops that join tensors share.
#pragma once

#include "op/op.h"

namespace headrace {

// Output 0 is the `n` inputs from `first` on, joined along the dimension that
// input `axis_input` names. Errors are upstream's for Concat.
Status ConcatShape(ShapeContext& c, int first, int n, int axis_input);

}  // namespace headrace
