// DLPack capsules.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

bool AddDlpack(PyObject* module);

}  // namespace headrace::bind
