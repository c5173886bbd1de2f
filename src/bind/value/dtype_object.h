// tf.DType in Python: one object a type.
#pragma once

#include "bind/python/python.h"
#include "tensor/dtype.h"

namespace headrace::bind {

// The base of Python's DType class: holds the number of the enum. Adds it to
// the module; false with an error set when that fails.
bool AddDTypeObject(PyObject* module);

// The one object of `d`; a new reference.
PyObject* DTypeObject(DType d);
bool IsDTypeObject(PyObject* o);
DType DTypeOfObject(PyObject* o);  // o: a DType object

// Whatever names a type: a DType, an enum number, a name, a NumPy type, a
// Python type. kInvalid without an error set when it names none.
DType AsDType(PyObject* o);

}  // namespace headrace::bind
