// Python objects to Values.
#pragma once

#include "bind/python/python.h"
#include "op/value.h"

namespace headrace::bind {

// What the receiver says about the type. `required`: the value must have it.
// `hint`: it is tried first. Both kInvalid: the value decides.
struct WantedType {
  DType required = DType::kInvalid;
  DType hint = DType::kInvalid;
};

// The value of any object that tf.convert_to_tensor takes: tensors, variables
// (read), numbers, strings, arrays, nested sequences, registered types. A
// tensor of another dtype than required is handed on as it is: the op says so
// better. False with a Python error set.
bool ToValue(PyObject* o, WantedType wanted, Value* out);

// The same for Python data only (no tensors inside): what tf.constant takes.
bool ToTensor(PyObject* o, WantedType wanted, Tensor* out);

// A constant in this thread's emitter: the tensor itself when eager, a Const
// node of that name (empty: "Const") in a graph. False with an error set.
bool ConstantValue(Tensor t, StringView name, Value* out);

// Python code that converts what C++ does not know, set once: called with
// (object, dtype or None, hint or None), returns a Tensor or raises.
void SetConverter(PyObject* function);

// True for lists and tuples (and their subclasses).
inline bool IsSequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o);
}

// Raises TypeError in the words of eager code or of graphs: `whole` (or its
// part `leaf`) is no value of dtype d. Returns false.
bool CannotConvert(PyObject* whole, PyObject* leaf, DType d);

// The name that an op call was given, in UTF-8; null, with TypeError, where it
// is no str.
const char* NameText(PyObject* name);

// A (nested) list, tuple or range as a tensor; see ToTensor.
bool SequenceToTensor(PyObject* o, DType required, Tensor* out);
// *holds: whether some leaf of the nested sequence is not plain data (a tensor,
// a variable, an array-like object), so that the pieces must be packed by ops.
// False, with RecursionError, where it is nested too deeply.
bool HoldsTensors(PyObject* sequence, bool* holds);
// The dtype of data that have one already, which no default may change: an
// array, a scalar of NumPy, lists whose first leaf is one of these or a tensor.
// kInvalid for all else.
DType OwnDType(PyObject* o);

// One Python number or string into element i of `t`, by upstream's rules of
// what may become what; false when it may not: with an error set for numbers
// and texts that no tensor can hold.
bool StoreScalar(PyObject* o, const Tensor& t, int64_t i);
// Sets upstream's ValueError about an integer of more than 64 bits; false.
bool RaiseOutOfRange();
// True where an integer, alone, in lists or in an array, does not fit int32 but
// int64.
bool NeedsInt64(PyObject* o);
// The dtype that a Python number or string has when nothing else decides;
// kInvalid for other objects.
DType ScalarDType(PyObject* o);

}  // namespace headrace::bind
