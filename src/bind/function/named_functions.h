// Functions by name in Python: those of C++ as objects to be called.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddNamedFunctions(nanobind::module_& m);

}  // namespace headrace::bind
