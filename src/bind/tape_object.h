// The native tape in Python; tf.GradientTape is built on it.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddTape(nanobind::module_& m);

}  // namespace headrace::bind
