// The `headrace` program within Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// run_command(arguments), a list of bytes: what the process ends with.
void AddCommand(nanobind::module_& m);

}  // namespace headrace::bind
