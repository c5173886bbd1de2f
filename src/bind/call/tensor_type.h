// What Python can ask of a tensor: attributes, operators, conversions.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Makes Tensor and its types, and adds them to the module; false with an error
// set.
bool AddTensorTypes(PyObject* module);

}  // namespace headrace::bind
