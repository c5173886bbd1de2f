// The list of ops: ours by static initialisers, users' by op/added_op.h.
#pragma once

#include <vector>

#include "op/op_def.h"

namespace headrace {

// The op of that name, or null, for ever. No lock for ours.
const OpDef* FindOp(StringView name);
// The op, or NotFound "Op type not registered 'X' in binary running on HOST..."
StatusOr<const OpDef*> LookUpOp(StringView name);
// Whether functions are among its attributes: a loop, a branch, a call.
bool CallsFunctions(const OpDef& def);
// Every op, in order of name.
std::vector<const OpDef*> AllOps();
// The ops of that role, in order of name. Looks at all ops: who asks often
// keeps the answer.
std::vector<const OpDef*> OpsOfRole(OpRole role);
// Adds a CUDA kernel to an op defined elsewhere.
void RegisterCudaKernel(const char* op, KernelFactory factory);

namespace internal {
void AddOp(OpDef def);  // OpBuilder's
}

}  // namespace headrace
