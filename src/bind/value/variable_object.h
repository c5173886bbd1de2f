// The core of tf.Variable in Python: its handle, dtype and shape.
#pragma once

#include <memory>

#include "bind/python/python.h"
#include "op/value.h"

namespace headrace::bind {

// Adds VariableBase, from which Python's ResourceVariable derives.
bool AddVariableType(PyObject* module);
bool IsVariable(PyObject* o);
// The handle; null while the object is not set up.
const Value& HandleOf(PyObject* variable);
struct VariableTraits {
  DType dtype;
  const Shape* shape;  // the variable's own
  bool trainable;
};
VariableTraits TraitsOf(PyObject* variable);
// Tells tapes of a trainable variable that is about to be used.
void TouchVariable(PyObject* variable);
// Lives as long as the object. Asking for it makes the object's end empty the
// variable, for functions that captured its handle and hold the object weakly.
// Of a variable that C++ made it is the variable's own life.
std::weak_ptr<void> LifeOf(PyObject* variable);
// The value now, by a ReadVariableOp that tapes see, and a Cast where layers
// keep it in another dtype than they compute in. False with an error set.
bool ReadVariable(PyObject* variable, Value* out);
// set_read_dtype(dtype or None): what this thread's reads of such variables
// give; returns what it was before.
PyObject* SetReadDType(PyObject*, PyObject* dtype);

}  // namespace headrace::bind
