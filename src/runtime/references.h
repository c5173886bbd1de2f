// References of TensorFlow 1's variables, where programs and frames meet them:
// what runs is a handle, and an op that does not take the reference itself gets
// the value.
#pragma once

#include "graph/graph.h"
#include "op/kernel.h"

namespace headrace {

// The node's op with a name for its state: state that is given none has its
// node's (variables made by handle alone excepted, as upstream does).
StatusOr<ResolvedOpPtr> NamedOp(const Node& n);

// Whether input i of the op wants the reference itself, not its value.
bool TakesReference(const ResolvedOp& op, int i);

// The op that reads what is behind a reference to tensors of that dtype.
StatusOr<ResolvedOpPtr> ReaderOfReference(DType dtype);

}  // namespace headrace
