// Ops that are defined while the program runs, by a user's library say. They
// stay until the process ends, as graphs and functions may name them.
#pragma once

#include <vector>

#include "op/op_def.h"

namespace headrace {

// Adds the op, whose name and arguments were checked (op/op_spec.h), and
// returns it where it is kept. AlreadyExists where the name is taken.
// Thread-safe, as are all functions here: who looks for the op finds it or not.
StatusOr<const OpDef*> AddOpNow(OpDef def);

// All that were added, in that order.
std::vector<const OpDef*> OpsAdded();

}  // namespace headrace
