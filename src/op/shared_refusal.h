// Refusals of what several shape rules have in common, and of what shape rules
// share with kernels.
#pragma once

#include "op/shape_context.h"

namespace headrace {

// Why the inputs, merged from the last to the first, cannot be one shape; no
// text if they can.
ShapeRefusal NotAllMerged(const ShapeContext& c);
// Why `s` does not begin with `prefix`; no text if it may.
ShapeRefusal NotPrefixed(const Shape& s, const Shape& prefix);
// "Input must be scalar but has rank 1", `values` (a mask) named behind it.
ShapeRefusal NotScalar(const Shape& s, uint32_t values);
// "Dimension size, given by scalar input 1, must be non-negative but is -2".
ShapeRefusal NegativeSize(int input, int64_t size);

// The error of an axis that `rank` dimensions do not have: input 1's.
Status WrongReductionAxis(ShapeContext& c, int64_t axis, int rank);

// c->Refuse(in_graph, rule). Kernels have no context and pass null.
Status Refuse(ShapeContext* c, ShapeRefusal in_graph, Status rule);

}  // namespace headrace
