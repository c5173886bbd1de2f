#include "bind/function/call_key.h"

#include <algorithm>

#include "bind/value/convert.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"

namespace headrace::bind {
namespace {

enum Tag : uint64_t {
  kLiteral = Signature::kFirstOwn,
  kObject,
  kTuple,
  kList,
  kDict,
  kNamed,
  kComposite,
};

constexpr uint64_t Token(uint64_t tag, uint64_t low) {
  return Signature::Token(tag, low);
}

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
  // What cannot be compared differs: then a further trace is made, which is
  // right if slow.
  if (same < 0) PyErr_Clear();
  return same == 1;
}

}  // namespace

bool CallKey::AddVariable(PyObject* o) {
  const Value& handle = HandleOf(o);
  if (!handle) {
    PyErr_SetString(PyExc_RuntimeError, "this variable was never set up");
    return false;
  }
  VariableTraits traits = TraitsOf(o);
  signature_.AddVariable(handle, traits.dtype, *traits.shape, traits.trainable);
  // Tapes and watchers see a variable that is passed, as they see one that is
  // read.
  TouchVariable(o);
  return true;
}

void CallKey::AddLiteral(PyObject* o, uint64_t tag) {
  AddToken(Token(tag, 0));
  if (tag == kLiteral) {  // 1, 1.0 and True are equal and differ in type
    AddToken(reinterpret_cast<uintptr_t>(Py_TYPE(o)));
  }
  literals_.push_back(o);
}

[[gnu::hot]] bool CallKey::AddItems(uint64_t token, PyObject* o) {
  const Recursion entered(" in an argument of a tf.function");
  if (!entered) return false;
  Py_ssize_t n = PySequence_Size(o);
  if (n < 0) return false;
  AddToken(token);
  AddToken(static_cast<uint64_t>(n));
  // Items of lists and tuples are borrowed; any other sequence makes them anew,
  // and they must live as long as the key.
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
  // Upstream flattens dicts by sorted keys: two orders of insertion share a
  // trace.
  if (PyList_Sort(keys) < 0) {
    PyErr_SetString(PyExc_TypeError,
                    "nest only supports dicts with sortable keys.");
    return false;
  }
  Py_ssize_t n = PyList_Size(keys);
  AddToken(Token(kDict, static_cast<uint64_t>(n)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* key = PyList_GetItem(keys, i);
    // The keys belong to the structure: other keys are another trace.
    AddLiteral(key, kLiteral);
    PyObject* value = PyDict_GetItemWithError(o, key);
    if (value == nullptr || !Add(value)) return false;
  }
  return true;
}

bool CallKey::AddOther(PyObject* o) {
  uint64_t type = reinterpret_cast<uintptr_t>(Py_TYPE(o));
  // Subclasses, named tuples among them: the type is part of the key, as
  // results are packed into it.
  if (PyTuple_Check(o) || PyList_Check(o)) {
    AddToken(type);
    return AddItems(Token(kNamed, 0), o);
  }
  if (PyDict_Check(o)) return AddDict(o);
  // Arrays are tensors to a trace: by dtype and shape, not by value.
  if (IsArray(o) || IsNumpyScalar(o)) {
    Value v;
    if (!ToValue(o, {}, &v)) return false;
    signature_.AddTensor(v);
    return true;
  }
  if (TypeHas(o, "_is_composite_tensor")) {
    held_.emplace_back(Called<PyObject_CallMethod>(o, "_components", nullptr));
    PyObject* parts = held_.back().get();
    if (parts == nullptr) return false;
    AddToken(type);
    if (TypeHas(o, "_static_parts")) {  // what is in it besides tensors
      held_.emplace_back(
          Called<PyObject_CallMethod>(o, "_static_parts", nullptr));
      if (!held_.back()) return false;
      made_.push_back(held_.back().get());
      AddLiteral(held_.back().get(), kLiteral);
    }
    return AddItems(Token(kComposite, 0), parts);
  }
  // A class that defines the protocol for its objects does not speak for
  // itself.
  if (TypeHas(o, "__tf_tracing_type__") && !PyType_Check(o)) {
    held_.emplace_back(
        Called<PyObject_CallMethod>(o, "__tf_tracing_type__", "O", Py_None));
    if (!held_.back()) return false;
    made_.push_back(held_.back().get());
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
    AddToken(type);
    AddLiteral(metadata, kLiteral);
    // Numbers of kNamed tell the kinds of structures apart: 0 for sequences, 1
    // for attrs, 2 for __tf_flatten__.
    return AddItems(Token(kNamed, 2), parts);
  }
  if (TypeHas(o, "__attrs_attrs__") && !PyType_Check(o)) {
    const Recursion entered(" in an argument of a tf.function");
    if (!entered) return false;
    Ref fields(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)),
                                      "__attrs_attrs__"));
    Py_ssize_t n = fields ? PySequence_Size(fields.get()) : -1;
    if (n < 0) return false;
    AddToken(Token(kNamed, 1));
    AddToken(type);
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref field(PySequence_GetItem(fields.get(), i));
      Ref name(field ? PyObject_GetAttrString(field.get(), "name") : nullptr);
      held_.emplace_back(name ? PyObject_GetAttr(o, name.get()) : nullptr);
      if (!held_.back() || !Add(held_.back().get())) return false;
    }
    return true;
  }
  AddToken(type);
  // All else by identity or its own ==.
  AddLiteral(o, kObject);
  return true;
}

[[gnu::hot]] bool CallKey::Add(PyObject* o) {
  if (IsTensor(o)) return signature_.AddTensor(ValueOf(o)), true;
  // np.float64 is a float to Python; to upstream it is a tensor.
  if (IsLiteral(o) && !IsNumpyScalar(o)) return AddLiteral(o, kLiteral), true;
  if (PyTuple_CheckExact(o)) return AddItems(Token(kTuple, 0), o);
  if (PyList_CheckExact(o)) return AddItems(Token(kList, 0), o);
  if (IsVariable(o)) return AddVariable(o);
  return AddOther(o);
}

KeptKey::KeptKey(const CallKey& key)
    : tokens_(key.tokens().begin(), key.tokens().end()) {
  for (PyObject* o : key.literals()) {
    if (!IsLiteral(o) && !key.Made(o)) {
      // Weakly: a trace must not keep alive the model that it was made for.
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

[[gnu::hot]] bool KeptKey::Matches(const CallKey& key) const {
  // Tokens decide nearly always, and compare as numbers; literals run Python's
  // ==.
  if (tokens_.size() != key.tokens().size() ||
      literals_.size() != key.literals().size() ||
      !std::equal(tokens_.begin(), tokens_.end(), key.tokens().begin())) {
    return false;
  }
  for (size_t i = 0; i < literals_.size(); ++i) {
    PyObject* mine = literals_[i].object.get();
    if (literals_[i].weak) {
      mine = PyWeakref_GetObject(mine);
      // The object is gone, and its address may be another's: no call fits this
      // trace any more.
      if (mine == nullptr || mine == Py_None) return PyErr_Clear(), false;
    }
    Ref held = Ref::Borrow(mine);  // comparing runs foreign code
    if (!Same(mine, key.literals()[i])) return false;
  }
  return true;
}

}  // namespace headrace::bind
