// Libraries of ops that programs load.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// load_op_library(path): (its address, [(op, function name)], an OpList's
// bytes). NotFoundError where it cannot be loaded.
void AddOpLibrary(nanobind::module_& m);

}  // namespace headrace::bind
