// Status to Python exceptions.
#pragma once

#include "base/status.h"
#include "bind/python.h"

namespace headrace::bind {

// Raises the tf.errors class of the status' code. Where `in_graph` is set, an
// InvalidArgument is a ValueError, as shape errors of tracing are upstream.
void RaiseStatus(const Status& s, bool in_graph = false);

// The Python object `headrace.<module>.<name>`, looked up once by the caller;
// null with an error set when it is missing.
Ref Import(const char* module, const char* name);

}  // namespace headrace::bind
