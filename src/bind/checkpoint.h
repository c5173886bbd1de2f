// Checkpoints in Python: nodes of object graphs, saving, restoring, readers,
// state files. tf.train is built on it.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::bind {

void AddCheckpoint(nanobind::module_& m);

}  // namespace headrace::bind
