// Ops that plans make for themselves. No registry knows them, and their calls
// are given their kernels when they are made.
#pragma once

#include "op/op_def.h"

namespace headrace {

// From "inputs" of any types, "Tin", to "outputs" of any types, "Tout".
OpDef* NewPlanOp(const char* name);

}  // namespace headrace
