// tf.debugging.enable_check_numerics.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddNumberChecks(nanobind::module_& m);

}  // namespace headrace::bind
