// File systems for Python, by paths that name one ("ram://", "hdfs://").
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

// Adds FileReader, FileWriter and the functions file_* and
// write_file_atomically.
void AddFiles(nanobind::module_& m);

}  // namespace headrace::bind
