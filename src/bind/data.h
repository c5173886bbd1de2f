// Functions for datasets.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// Adds encode_iterator_state and decode_iterator_state.
void AddData(nanobind::module_& m);

}  // namespace headrace::bind
