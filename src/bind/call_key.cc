#include "bind/call_key.h"

#include <algorithm>

#include "bind/convert.h"
#include "bind/numpy_array.h"
#include "bind/tensor_object.h"
#include "bind/variable_object.h"

namespace headrace::bind {
namespace {

enum Tag : uint64_t {
  kTensor = 1,
  kVariable,
  kLiteral,
  kObject,
  kTuple,
  kList,
  kDict,
  kNamed,
  kComposite,
};

constexpr uint64_t Token(uint64_t tag, uint64_t low) { return tag << 56 | low; }

bool IsLiteral(PyObject* o) {
  return o == Py_None || PyLong_Check(o) || PyUnicode_Check(o) ||
         PyFloat_Check(o) || PyBytes_Check(o) || PyComplex_Check(o);
}

bool TypeHas(PyObject* o, const char* name) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), name);
}

bool Same(PyObject* a, PyObject* b) {
  if (a == b) return true;
  int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

}  // namespace

void CallKey::AddShape(uint64_t tag, DType dtype, const Shape& shape) {
  int rank = shape.rank();
  tokens_.push_back(Token(
      tag, static_cast<uint64_t>(dtype) << 16 | static_cast<uint8_t>(rank)));
  for (int i = 0; i < rank; ++i) tokens_.push_back(shape[i]);
}

bool CallKey::AddTensor(const Value& v) {
  AddShape(kTensor, v.dtype(), v.shape());
  leaves_.push_back(v);
  return true;
}

bool CallKey::AddVariable(PyObject* o) {
  const Value& handle = HandleOf(o);
  if (!handle) {
    PyErr_SetString(PyExc_RuntimeError, "this variable was never set up");
    return false;
  }
  VariableTraits traits = TraitsOf(o);
  AddShape(kVariable, traits.dtype, *traits.shape);
  auto at = std::find(variables_.begin(), variables_.end(), handle.id());
  tokens_.push_back(uint64_t{traits.trainable} << 32 |
                    static_cast<uint64_t>(at - variables_.begin()));
  if (at == variables_.end()) variables_.push_back(handle.id());
  leaves_.push_back(handle);
  TouchVariable(o);
  return true;
}

void CallKey::AddLiteral(PyObject* o, uint64_t tag) {
  tokens_.push_back(Token(tag, 0));
  if (tag == kLiteral) {  // 1, 1.0 and True are equal and differ in type
    tokens_.push_back(reinterpret_cast<uintptr_t>(Py_TYPE(o)));
  }
  literals_.push_back(o);
}

bool CallKey::AddItems(uint64_t token, PyObject* o) {
  const Recursion entered(" in an argument of a tf.function");
  if (!entered) return false;
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) return false;
  tokens_.push_back(token);
  tokens_.push_back(static_cast<uint64_t>(n));
  bool is_tuple = PyTuple_Check(o), is_list = PyList_Check(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = is_tuple  ? PyTuple_GetItem(o, i)
                     : is_list ? PyList_GetItem(o, i)
                               : nullptr;
    if (item == nullptr) {
      PyErr_Clear();
      held_.emplace_back(PySequence_GetItem(o, i));
      item = held_.back().get();
    }
    if (item == nullptr || !Add(item)) return false;
  }
  return true;
}

bool CallKey::AddDict(PyObject* o) {
  const Recursion entered(" in an argument of a tf.function");
  if (!entered) return false;
  held_.emplace_back(PyDict_Keys(o));
  PyObject* keys = held_.back().get();
  if (keys == nullptr) return false;
  if (PyList_Sort(keys) < 0) {
    PyErr_SetString(PyExc_TypeError,
                    "nest only supports dicts with sortable keys.");
    return false;
  }
  Py_ssize_t n = PyList_Size(keys);
  tokens_.push_back(Token(kDict, static_cast<uint64_t>(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* key = PyList_GetItem(keys, i);
    AddLiteral(key, kLiteral);
    PyObject* value = PyDict_GetItemWithError(o, key);
    if (value == nullptr || !Add(value)) return false;
  }
  return true;
}

bool CallKey::AddOther(PyObject* o) {
  uint64_t type = reinterpret_cast<uintptr_t>(Py_TYPE(o));
  if (PyTuple_Check(o) || PyList_Check(o)) {
    tokens_.push_back(type);
    return AddItems(Token(kNamed, 0), o);
  }
  if (PyDict_Check(o)) return AddDict(o);
  if (IsArray(o) || IsNumpyScalar(o)) {
    Value v;
    return ToValue(o, {}, &v) && AddTensor(v);
  }
  if (TypeHas(o, "_is_composite_tensor")) {
    held_.emplace_back(Called<PyObject_CallMethod>(o, "_components", nullptr));
    PyObject* parts = held_.back().get();
    if (parts == nullptr) return false;
    tokens_.push_back(type);
    return AddItems(Token(kComposite, 0), parts);
  }
  if (TypeHas(o, "__tf_tracing_type__") && !PyType_Check(o)) {
    held_.emplace_back(
        Called<PyObject_CallMethod>(o, "__tf_tracing_type__", "O", Py_None));
    if (!held_.back()) return false;
    AddLiteral(held_.back().get(), kLiteral);
    return true;
  }
  if (TypeHas(o, "__tf_flatten__") && !PyType_Check(o)) {
    Ref halves(Called<PyObject_CallMethod>(o, "__tf_flatten__", nullptr));
    if (!halves) return false;
    held_.emplace_back(PySequence_GetItem(halves.get(), 0));
    PyObject* metadata = held_.back().get();
    if (metadata == nullptr) return false;
    held_.emplace_back(PySequence_GetItem(halves.get(), 1));
    PyObject* parts = held_.back().get();
    if (parts == nullptr) return false;
    tokens_.push_back(type);
    AddLiteral(metadata, kLiteral);
    return AddItems(Token(kNamed, 2), parts);
  }
  if (TypeHas(o, "__attrs_attrs__") && !PyType_Check(o)) {
    const Recursion entered(" in an argument of a tf.function");
    if (!entered) return false;
    Ref fields(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)),
                                      "__attrs_attrs__"));
    Py_ssize_t n = fields ? PySequence_Size(fields.get()) : -1;
    if (n < 0) return false;
    tokens_.push_back(Token(kNamed, 1));
    tokens_.push_back(type);
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref field(PySequence_GetItem(fields.get(), i));
      Ref name(field ? PyObject_GetAttrString(field.get(), "name") : nullptr);
      held_.emplace_back(name ? PyObject_GetAttr(o, name.get()) : nullptr);
      if (!held_.back() || !Add(held_.back().get())) return false;
    }
    return true;
  }
  tokens_.push_back(type);
  AddLiteral(o, kObject);
  return true;
}

bool CallKey::Add(PyObject* o) {
  if (IsTensor(o)) return AddTensor(ValueOf(o));
  if (IsLiteral(o) && !IsNumpyScalar(o)) return AddLiteral(o, kLiteral), true;
  if (PyTuple_CheckExact(o)) return AddItems(Token(kTuple, 0), o);
  if (PyList_CheckExact(o)) return AddItems(Token(kList, 0), o);
  if (IsVariable(o)) return AddVariable(o);
  return AddOther(o);
}

KeptKey::KeptKey(const CallKey& key)
    : tokens_(key.tokens().begin(), key.tokens().end()) {
  for (PyObject* o : key.literals()) {
    if (!IsLiteral(o)) {
      Ref weak(PyWeakref_NewRef(o, nullptr));
      if (weak) {
        literals_.push_back({std::move(weak), true});
        continue;
      }
      PyErr_Clear();  // no weak references to such objects
    }
    literals_.push_back({Ref::Borrow(o), false});
  }
}

bool KeptKey::Matches(const CallKey& key) const {
  if (tokens_.size() != key.tokens().size() ||
      literals_.size() != key.literals().size() ||
      !std::equal(tokens_.begin(), tokens_.end(), key.tokens().begin())) {
    return false;
  }
  for (size_t i = 0; i < literals_.size(); ++i) {
    PyObject* mine = literals_[i].object.get();
    if (literals_[i].weak) {
      mine = PyWeakref_GetObject(mine);
      if (mine == nullptr || mine == Py_None) return PyErr_Clear(), false;
    }
    Ref held = Ref::Borrow(mine);  // comparing runs foreign code
    if (!Same(mine, key.literals()[i])) return false;
  }
  return true;
}

}  // namespace headrace::bind
