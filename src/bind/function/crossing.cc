#include "bind/function/crossing.h"

#include <string>

#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"

namespace headrace::bind {

std::string Place::Text() const {
  if (outer == nullptr) return name;
  if (key == nullptr) return absl::StrCat(outer->Text(), "[", index, "]");
  const Ref text(PyObject_Repr(key));
  const char* utf8 = text ? Utf8Of(text.get()) : nullptr;
  PyErr_Clear();  // a key that cannot be shown hides nothing else
  return absl::StrCat(outer->Text(), "[", utf8 ? utf8 : "?", "]");
}

namespace {

bool CannotCross(PyObject* o, const Place& place, const char* why = "") {
  const Ref type(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)),
                                        "__name__"));
  if (!type) return false;
  PyErr_Format(PyExc_TypeError,
               "%s, of type %U, cannot go from Python to C++%s. Tensors, "
               "variables, arrays, None, bools, ints, floats, str, and tuples, "
               "lists and dicts of these can.",
               place.Text().c_str(), type.get(), why);
  return false;
}

bool AddCrossingItems(PyObject* o, const Place& place, bool specs,
                      Signature* out) {
  const Recursion entered(" in a value for a function of C++");
  if (!entered) return false;
  const bool is_tuple = PyTuple_Check(o);
  const Py_ssize_t n = PySequence_Size(o);
  if (n < 0) return false;
  out->AddStructure(is_tuple ? Signature::kTuple : Signature::kList, n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    // Converting an item may run Python code, which may change the list.
    const Ref item(PySequence_GetItem(o, i));
    if (!item) return false;
    if (!AddCrossing(item.get(), {.outer = &place, .index = i}, specs, out)) {
      return false;
    }
  }
  return true;
}

bool AddCrossingText(PyObject* o, const Place& place, Signature* out) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (text == nullptr) {
    PyErr_Clear();
    return CannotCross(o, place, ": it has characters without UTF-8");
  }
  out->AddText(StringView(text, size));
  return true;
}

bool AddCrossingDict(PyObject* o, const Place& place, bool specs,
                     Signature* out) {
  const Recursion entered(" in a value for a function of C++");
  if (!entered) return false;
  const Ref keys(PyDict_Keys(o));
  if (!keys) return false;
  const Py_ssize_t n = PyList_Size(keys.get());
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!PyUnicode_Check(PyList_GetItem(keys.get(), i))) {
      return CannotCross(o, place, ": its keys are not all str");
    }
  }
  if (PyList_Sort(keys.get()) < 0) return false;
  out->AddStructure(Signature::kDict, n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* key = PyList_GetItem(keys.get(), i);
    const Ref value = Ref::Borrow(PyDict_GetItemWithError(o, key));
    if (!value) return CannotCross(o, place, ": it changes while it is read");
    if (!AddCrossingText(key, place, out) ||
        !AddCrossing(value.get(), {.outer = &place, .key = key}, specs, out)) {
      return false;
    }
  }
  return true;
}

bool AddCrossingInt(PyObject* o, const Place& place, Signature* out) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow != 0) return CannotCross(o, place, ": it has over 64 bits");
  if (v == -1 && PyErr_Occurred()) return false;
  out->AddInt(v);
  return true;
}

bool AddCrossingVariable(PyObject* o, Signature* out) {
  const VariableTraits traits = TraitsOf(o);
  out->AddVariable(HandleOf(o), traits.dtype, *traits.shape, traits.trainable);
  TouchVariable(o);  // tapes watch what is passed as they do what is read
  return true;
}

// The class TensorSpec, borrowed; null with an exception set.
PyObject* TensorSpecClass() {
  static PyObject* spec_class = nullptr;
  if (spec_class == nullptr) {
    spec_class = Import("framework.type_spec", "TensorSpec").release();
  }
  return spec_class;
}

// A TensorSpec; *is_spec says whether it is one.
bool AddCrossingSpec(PyObject* o, bool* is_spec, Signature* out) {
  PyObject* spec_class = TensorSpecClass();
  if (spec_class == nullptr) return false;
  *is_spec = reinterpret_cast<PyObject*>(Py_TYPE(o)) == spec_class;
  if (!*is_spec) return true;
  const Ref dtype(PyObject_GetAttrString(o, "dtype"));
  const Ref shape_object(PyObject_GetAttrString(o, "shape"));
  Shape shape;
  if (!dtype || !shape_object || !AsShape(shape_object.get(), &shape)) {
    return false;
  }
  const DType d = AsDType(dtype.get());
  if (d == DType::kInvalid) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_TypeError, "a TensorSpec without a dtype");
    }
    return false;
  }
  out->AddSpec(d, shape);
  return true;
}

}  // namespace

bool AddCrossing(PyObject* o, const Place& place, bool specs, Signature* out) {
  if (IsTensor(o)) return out->AddTensor(ValueOf(o)), true;
  if (IsVariable(o)) return AddCrossingVariable(o, out);
  // Before numbers: np.float64 is a float to Python.
  if (IsArray(o) || IsNumpyScalar(o)) {
    Value v;
    if (!ToValue(o, {}, &v)) return false;
    out->AddTensor(v);
    return true;
  }
  if (o == Py_None) return out->AddNone(), true;
  if (PyBool_Check(o)) return out->AddBool(o == Py_True), true;
  if (PyLong_Check(o)) return AddCrossingInt(o, place, out);
  if (PyFloat_Check(o)) return out->AddFloat(PyFloat_AsDouble(o)), true;
  if (PyUnicode_Check(o)) return AddCrossingText(o, place, out);
  // A named tuple's names would be lost.
  if (PyTuple_CheckExact(o) || PyList_Check(o)) {
    return AddCrossingItems(o, place, specs, out);
  }
  if (PyDict_Check(o)) return AddCrossingDict(o, place, specs, out);
  bool is_spec = false;
  if (specs && !AddCrossingSpec(o, &is_spec, out)) return false;
  return is_spec || CannotCross(o, place);
}

Ref CrossedValues::TakeItems(int64_t count, bool is_tuple) {
  Ref items(is_tuple ? PyTuple_New(count) : PyList_New(count));
  for (int64_t i = 0; items && i < count; ++i) {
    Ref item = Take();
    if (!item) return Ref();
    if (is_tuple) {
      PyTuple_SetItem(items.get(), i, item.release());
    } else {
      PyList_SetItem(items.get(), i, item.release());
    }
  }
  return items;
}

Ref CrossedValues::TakeDict(int64_t count) {
  Ref dict(PyDict_New());
  for (int64_t i = 0; dict && i < count; ++i) {
    const Ref key = Take();
    if (!key) return Ref();
    const Ref value = Take();
    if (!value || PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) {
      return Ref();
    }
  }
  return dict;
}

Ref CrossedValues::TakeTensor(const SignatureItem& item) {
  if (!specs_) return Ref(WrapValue(leaves_[leaf_++]));
  PyObject* spec_class = TensorSpecClass();
  if (spec_class == nullptr) return Ref();
  const Ref shape(ShapeObject(item.shape)), dtype(DTypeObject(item.dtype));
  if (!shape || !dtype) return Ref();
  return Ref(Called<PyObject_CallFunctionObjArgs>(spec_class, shape.get(),
                                                  dtype.get(), nullptr));
}

// The variable of Python that has the handle, or one made for it.
Ref CrossedValues::TakeVariable(const SignatureItem& item) {
  static PyObject* find = nullptr;
  if (find == nullptr) {
    find = Import("function.named", "variable_of").release();
    if (find == nullptr) return Ref();
  }
  // Tensors that were given in the place of specs lie between.
  while (specs_ && leaf_ < leaves_.size() &&
         leaves_[leaf_].dtype() != DType::kResource) {
    ++leaf_;
  }
  if (leaf_ >= leaves_.size()) {
    PyErr_SetString(PyExc_TypeError, "a variable has no description in Python");
    return Ref();
  }
  const Ref handle(WrapValue(leaves_[leaf_++])), shape(ShapeObject(item.shape));
  const Ref dtype(DTypeObject(item.dtype));
  const Ref trainable(PyBool_FromLong(item.trainable));
  if (!handle || !shape || !dtype) return Ref();
  return Ref(Called<PyObject_CallFunctionObjArgs>(
      find, handle.get(), dtype.get(), shape.get(), trainable.get(), nullptr));
}

Ref CrossedValues::Take() {
  const Recursion entered(" in a value of C++");
  if (!entered) return Ref();
  const SignatureItem item = ReadItem(tokens_, &at_);
  switch (item.tag) {
    case Signature::kTensor:
      return TakeTensor(item);
    case Signature::kVariable:
      return TakeVariable(item);
    case Signature::kNone:
      return Ref::Borrow(Py_None);
    case Signature::kBool:
      return Ref(PyBool_FromLong(item.number));
    case Signature::kInt:
      return Ref(PyLong_FromLongLong(item.number));
    case Signature::kFloat:
      return Ref(PyFloat_FromDouble(item.real));
    case Signature::kText:
      return Ref(
          PyUnicode_DecodeUTF8(item.text.data(), item.text.size(), nullptr));
    case Signature::kTuple:
    case Signature::kList:
      return TakeItems(item.number, item.tag == Signature::kTuple);
    case Signature::kDict:
      return TakeDict(item.number);
    default:
      PyErr_SetString(PyExc_TypeError, "C++ gave a value of unknown kind");
      return Ref();
  }
}

}  // namespace headrace::bind
