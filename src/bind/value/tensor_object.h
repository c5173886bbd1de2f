// tf.Tensor in Python: a Value held inline. Eager and symbolic values have a
// Python type each, both below Tensor; Python code adds methods to all three.
#pragma once

#include "bind/python/python.h"
#include "op/value.h"

namespace headrace::bind {

struct TensorObject {
  PyObject_HEAD Value value;
  PyObject* dict;
  PyObject* weak_references;
  PyObject*
      owner;  // a symbolic tensor's tf.Graph where sessions run it, or null
};

// Made by AddTensorTypes (bind/call/tensor_type.h).
extern PyTypeObject* tensor_type;    // Tensor
extern PyTypeObject* eager_type;     // EagerTensor
extern PyTypeObject* symbolic_type;  // SymbolicTensor

inline bool IsTensor(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == eager_type || t == symbolic_type ||
         PyType_IsSubtype(t, tensor_type);
}
inline const Value& ValueOf(PyObject* o) {
  return reinterpret_cast<TensorObject*>(o)->value;
}

// A new Tensor object around the value; None for a null value.
PyObject* WrapValue(Value v);
// Tensors of the native graph at this address hold what `weak` refers to from
// now on: a tf.Graph lives as long as its tensors. Null: it is gone.
void SetGraphOwner(uint64_t address, PyObject* weak);
// The logical processor that tensors made on this thread say they are on.
void SetProcessor(int index);

// tf.TensorShape of a shape: new reference, or null with an error set.
PyObject* ShapeObject(const Shape& s);
// Its sizes as a tuple of ints, None for unknown ones; None for an unknown
// rank.
PyObject* SizesOf(const Shape& s);
bool IsShapeObject(PyObject* o);
// A shape from a TensorShape, None, an int, a list or tuple of ints, Nones or
// scalar tensors. False with an error set.
bool AsShape(PyObject* o, Shape* out);
// The class made by Python that ShapeObject instantiates.
void SetShapeClass(PyObject* cls);

}  // namespace headrace::bind
