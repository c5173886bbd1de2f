// Gradients of the ops that call functions. Inside a graph the call grows: it
// gets more results, which the way back reads, so nothing runs twice.
#pragma once

#include "op/gradient.h"

namespace headrace {

Status CallGradientOfCall(GradientContext& g);   // (Stateful)PartitionedCall
Status CallGradientOfIf(GradientContext& g);     // (Stateless)If
Status CallGradientOfCase(GradientContext& g);   // (Stateless)Case
Status CallGradientOfWhile(GradientContext& g);  // (Stateless)While

}  // namespace headrace
