// Calls of code that AutoGraph converted.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Adds set_converted_call(function, types) and converted_call; false with an
// error set.
bool AddConvertedCall(PyObject* module);

}  // namespace headrace::bind
