// SavedModels in Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// Adds LoadedModel and what reads SavedModels.
void AddSavedModel(nanobind::module_& m);
// Adds ModelWriter.
void AddModelWriter(nanobind::module_& m);

}  // namespace headrace::bind
