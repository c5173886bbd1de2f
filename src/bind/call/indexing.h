// tensor[key]: Python's indexing as a StridedSlice.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Integers, slices of integers, Ellipsis and None (alone or in a tuple) are
// handled here; every other key by Python's slicing_ops.slice_tensor.
PyObject* Subscript(PyObject* tensor, PyObject* key);

}  // namespace headrace::bind
