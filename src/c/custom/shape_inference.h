// Shape functions of users' ops.
#pragma once

#include "op/shape_context.h"
#include "tensorflow/c/ops.h"

namespace headrace::capi {

using ShapeFunction = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// Asks it for the outputs' shapes; its error, or that of what it throws.
Status RunShapeFunction(ShapeFunction f, ShapeContext& c);

}  // namespace headrace::capi
