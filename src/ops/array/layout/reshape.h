// What ops that reshape share.
#pragma once

#include "op/op.h"

namespace headrace {

// Output 0 has input 0's elements in the shape that input 1 holds.
Status ReshapeRule(ShapeContext& c);
// Sets output 0 so, a view of input 0.
Status RunReshape(KernelContext& c);

}  // namespace headrace
