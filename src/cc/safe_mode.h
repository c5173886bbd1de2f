// tf::SafeMode as the library has it.
#pragma once

#include "headrace/safe_mode.h"
#include "op/reach.h"

namespace headrace::tf::internal {

// Throws what FromText does, and kInvalidArgument for ops that are not there.
SandboxPtr SandboxOf(const SafeMode& mode, std::string whose);

}  // namespace headrace::tf::internal
