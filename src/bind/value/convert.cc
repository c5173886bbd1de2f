#include "bind/value/convert.h"

#include <algorithm>
#include <string>

#include "bind/python/status.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "op/emitter.h"

namespace headrace::bind {
namespace {

PyObject* converter = nullptr;

// A Python number or string of dtype d.
bool ScalarToTensor(PyObject* o, DType own, DType wanted, Tensor* out) {
  DType d = wanted == DType::kInvalid ? own : wanted;
  // The commonest number by far, without an allocation of a buffer by dtype.
  if (d == DType::kFloat && PyFloat_CheckExact(o)) {
    *out = Tensor::Scalar<float>(static_cast<float>(PyFloat_AsDouble(o)));
    return true;
  }
  StatusOr<Tensor> t = Tensor::Allocate(d, Shape());
  if (absl::IsResourceExhausted(t.status())) {
    return RaiseStatus(t.status()), false;
  }
  if (!t.ok()) return CannotConvert(o, o, d);
  if (!StoreScalar(o, *t, 0)) {
    // StoreScalar refuses without an error where the kind of the value is
    // wrong, and with one where it is too large.
    return PyErr_Occurred() ? false : CannotConvert(o, o, d);
  }
  *out = *std::move(t);
  return true;
}

bool Attempt(PyObject* o, DType d, Tensor* out) {
  // NumPy's scalars are Python's floats, too (np.float64), but have a dtype of
  // their own.
  DType own = IsNumpyScalar(o) ? DType::kInvalid : ScalarDType(o);
  if (own != DType::kInvalid) return ScalarToTensor(o, own, d, out);
  if (IsArray(o) || IsNumpyScalar(o)) return ArrayToTensor(o, d, out);
  return SequenceToTensor(o, d, out);
}

// Whether lists are nested more deeply than any tensor, or contain themselves.
bool IsTooDeep(PyObject* o, int depth = 0) {
  const bool list = PyList_CheckExact(o);
  if (!list && !PyTuple_CheckExact(o)) return false;
  // Also ends for a list that contains itself.
  if (depth > Shape::kMaxRank) return true;
  const Py_ssize_t n = list ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
    if (IsTooDeep(item, depth + 1)) return true;
  }
  return false;
}

// A ValueError that is set, about data that no tensor can hold, in the words of
// graphs, which make constants by way of NumPy.
void SayInGraphWords(PyObject* o) {
  if (!PyErr_ExceptionMatches(PyExc_ValueError) || IsArray(o)) return;
  if (IsTooDeep(o)) return;  // NumPy would walk along all of it
  PyErr_Clear();
  if (IsSequence(o)) {
    Ref numpy(PyImport_ImportModule("numpy"));
    Ref array(numpy ? Called<PyObject_CallMethod>(numpy.get(), "array", "O", o)
                    : nullptr);
    if (!array) return;  // NumPy's own text, of rows of unequal lengths
  }
  PyErr_Format(
      PyExc_TypeError,
      "Failed to convert elements of %S to Tensor. Consider casting elements "
      "to a supported type. See "
      "https://www.tensorflow.org/api_docs/python/tf/dtypes for supported TF "
      "dtypes.",
      o);
}

bool IsPythonData(PyObject* o) {
  return ScalarDType(o) != DType::kInvalid || IsArray(o) || IsNumpyScalar(o) ||
         PyRange_Check(o);
}

bool CallConverter(PyObject* o, WantedType wanted, Value* out) {
  // Only while the package is being imported.
  if (converter == nullptr) {
    return Raise(PyExc_TypeError, "cannot convert %R to a Tensor", o);
  }
  auto dtype = [](DType d) {
    return d == DType::kInvalid ? Ref::Borrow(Py_None) : Ref(DTypeObject(d));
  };
  Ref required = dtype(wanted.required), hint = dtype(wanted.hint);
  if (!required || !hint) return false;
  Ref t(Called<PyObject_CallFunctionObjArgs>(converter, o, required.get(),
                                             hint.get(), nullptr));
  if (!t) return false;
  // Registered functions are users': their result is looked at.
  if (!IsTensor(t.get())) {
    return Raise(PyExc_TypeError, "%R is not a Tensor", t.get());
  }
  *out = ValueOf(t.get());
  return true;
}

// Whether an integer, alone, in lists or in an array, does not fit int32. Lists
// nested more deeply than any tensor (they may contain themselves) end the
// search.
enum class Fits { kYes, kNo, kTooDeep };
Fits FitsInt32(PyObject* o, int depth) {
  const auto fits = [](int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; };
  if (PyLong_CheckExact(o)) {
    int overflow;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    // Beyond int64 nothing is gained by int64: the conversion will refuse it.
    return overflow != 0 || fits(v) ? Fits::kYes : Fits::kNo;
  }
  if (IsArray(o) || IsNumpyScalar(o)) {
    Tensor t;
    // Unsigned and smaller types have dtypes of their own to go by.
    if (ArrayDType(o) != DType::kInt64) return Fits::kYes;
    if (!ArrayToTensor(o, DType::kInt64, &t)) return PyErr_Clear(), Fits::kYes;
    const auto values = t.span<int64_t>();
    return std::all_of(values.begin(), values.end(), fits) ? Fits::kYes
                                                           : Fits::kNo;
  }
  const bool list = PyList_CheckExact(o);
  if (!list && !PyTuple_CheckExact(o)) return Fits::kYes;
  if (depth > Shape::kMaxRank) return Fits::kTooDeep;
  Fits all = Fits::kYes;
  const Py_ssize_t n = list ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && all == Fits::kYes; ++i) {
    all = FitsInt32(list ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i),
                    depth + 1);
  }
  return all;
}

}  // namespace

bool CannotConvert(PyObject* whole, PyObject* leaf, DType d) {
  if (!CurrentEmitter()->is_eager()) {
    Ref type(PyType_GetName(Py_TYPE(leaf)));
    if (!type) return false;
    PyErr_Format(PyExc_TypeError, "Expected %s, but got %S of type '%U'.",
                 std::string(DTypePythonName(d)).c_str(), leaf, type.get());
    return false;
  }
  PyErr_Format(PyExc_TypeError, "Cannot convert %R to EagerTensor of dtype %s",
               whole, std::string(DTypeName(d)).c_str());
  return false;
}

const char* NameText(PyObject* name) {
  if (PyUnicode_Check(name)) return Utf8Of(name);
  PyErr_Format(PyExc_TypeError,
               "Expected a str for argument 'name', got %R of type '%s'", name,
               NameOfType(name).c_str());
  return nullptr;
}

bool NeedsInt64(PyObject* o) { return FitsInt32(o, 0) == Fits::kNo; }

void SetConverter(PyObject* function) {
  // Before the old one goes: both may be the same.
  Py_XINCREF(function);
  Replace(&converter, function);
}

[[gnu::hot]] bool ToTensor(PyObject* o, WantedType wanted, Tensor* out) {
  if (wanted.required == DType::kInvalid && wanted.hint != DType::kInvalid) {
    // A hint that the value does not fit (2.5 where int32 is hinted) gives way
    // to the value's own type.
    if (Attempt(o, wanted.hint, out)) return true;
    PyErr_Clear();
  }
  if (Attempt(o, wanted.required, out)) return true;
  // The same failure reads differently in graphs upstream.
  if (!CurrentEmitter()->is_eager()) SayInGraphWords(o);
  return false;
}

[[gnu::hot]] bool ConstantValue(Tensor t, StringView name, Value* out) {
  if (CurrentEmitter()->is_eager()) {
    *out = Value(std::move(t));
    return true;
  }
  OpScope scope;
  *out = scope.Const(std::move(t));
  if (scope.ok()) return true;
  if (!PyErr_Occurred()) RaiseStatus(scope.status(), /*in_graph=*/true);
  return false;
}

[[gnu::hot]] bool ToValue(PyObject* o, WantedType wanted, Value* out) {
  if (IsTensor(o)) {
    *out = ValueOf(o);
    return true;
  }
  // By a read that tapes see.
  if (IsVariable(o)) return ReadVariable(o, out);
  bool plain;
  if (IsSequence(o)) {
    // Lists with tensors in them are packed by ops, so that gradients reach the
    // parts.
    if (!HoldsTensors(o, &plain)) return false;
    plain = !plain;
  } else {
    plain = IsPythonData(o);
  }
  if (plain) {
    Tensor t;
    return ToTensor(o, wanted, &t) && ConstantValue(std::move(t), "", out);
  }
  return CallConverter(o, wanted, out);
}

}  // namespace headrace::bind
