// Ops that put tensors beside one another, as their files state.
#pragma once

#include "op/op_def.h"

namespace headrace {

// Joins the tensors "values" along input "axis", its last one.
inline constexpr OpTrait kJoins = static_cast<OpTrait>(20);
static_assert(static_cast<int>(OpTrait::kTakesLists) < 20);

}  // namespace headrace
