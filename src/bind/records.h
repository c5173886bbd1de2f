// Record files for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// Adds RecordWriter and RecordIterator.
void AddRecords(nanobind::module_& m);

}  // namespace headrace::bind
