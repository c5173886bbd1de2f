// Gradients that Python gives to names (headrace.eager.named_gradients).
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddNamedGradients(nanobind::module_& m);

}  // namespace headrace::bind
