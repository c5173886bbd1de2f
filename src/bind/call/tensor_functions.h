// Functions of the module around tensors: constants, conversion, hooks.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

bool AddTensorFunctions(PyObject* module);

}  // namespace headrace::bind
