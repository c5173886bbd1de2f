// Python's operators on tensors.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Whether a first operand is text: a tensor, variable or array of strings, or
// Python data that starts with one. Sets no error.
bool IsText(PyObject* o);

// Whether == of tensors compares their elements, as in TensorFlow 2, or only
// whether they are the same, as in TensorFlow 1. Process-wide.
void SetTensorEquality(bool on);
bool TensorEquality();
// Whether a tensor equals only itself: where that is asked for, and in a
// session's graph, whose feeds are keyed by tensors.
bool ComparesByIdentity(PyObject* o);

// Number slots: either operand may be the tensor. NotImplemented where the
// other operand's type has a reflected method of its own that may know better.
PyObject* AddTensors(PyObject* x, PyObject* y);
PyObject* SubtractTensors(PyObject* x, PyObject* y);
PyObject* MultiplyTensors(PyObject* x, PyObject* y);
PyObject* DivideTensors(PyObject* x, PyObject* y);
PyObject* FloorDivideTensors(PyObject* x, PyObject* y);
PyObject* ModTensors(PyObject* x, PyObject* y);
PyObject* PowerTensors(PyObject* x, PyObject* y, PyObject* modulus);
PyObject* MatmulTensors(PyObject* x, PyObject* y);
PyObject* AndTensors(PyObject* x, PyObject* y);
PyObject* OrTensors(PyObject* x, PyObject* y);
PyObject* XorTensors(PyObject* x, PyObject* y);
PyObject* NegateTensor(PyObject* x);
PyObject* AbsTensor(PyObject* x);
PyObject* InvertTensor(PyObject* x);
// < <= > >= run ops; == and != compare by element, or identity where the
// other operand cannot be compared.
PyObject* CompareTensors(PyObject* x, PyObject* y, int op);

}  // namespace headrace::bind
