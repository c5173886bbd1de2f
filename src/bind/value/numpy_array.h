// Tensors to NumPy arrays and back. NumPy is imported by the first of these
// functions that needs it.
#pragma once

#include "base/status.h"
#include "bind/python/python.h"
#include "tensor/tensor.h"

namespace headrace::bind {

// The type that a NumPy dtype (or what np.dtype accepts) stands for, or
// kInvalid without an error set.
DType DTypeOfNumpy(PyObject* o);
// The NumPy dtype that elements of `d` become (strings: object); a new
// reference, or null with an error set (resource, variant).
PyObject* NumpyDType(DType d);

bool IsArray(PyObject* o);        // np.ndarray
bool IsNumpyScalar(PyObject* o);  // np.generic
// The array's dtype as a tensor's; kInvalid when there is none.
DType ArrayDType(PyObject* array);

// A copy of an array or scalar as a tensor, cast to `wanted` by NumPy's rules
// unless that is kInvalid. False with an error set.
bool ArrayToTensor(PyObject* array, DType wanted, Tensor* out);

// A tensor over the memory of an array, which it keeps alive; a copy where the
// array is not dense, aligned and of a plain type. Whoever makes one sees to it
// that nobody is handed it for longer than the array stays as it is. False with
// an error set.
bool ViewOfArray(PyObject* array, Tensor* out);

// The tensor as an array: a read-only view that keeps `owner` alive where
// `copy` is false and the type allows it. Object arrays of bytes for strings.
PyObject* TensorToArray(const Tensor& t, PyObject* owner, bool copy);
// The same, but a scalar tensor becomes a NumPy scalar (bytes for strings).
PyObject* TensorToNumpy(const Tensor& t, PyObject* owner);

}  // namespace headrace::bind
