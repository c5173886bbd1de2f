#include "bind/call/dispatched.h"

#include <structmember.h>

#include <cstddef>
#include <vector>

#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/tensor_object.h"

namespace headrace::bind {
namespace {

struct DispatchedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* row;
  PyObject* dict;
  PyObject* weak_references;
};

PyTypeObject* dispatched_type = nullptr;
std::vector<PyTypeObject*> watched;  // for ever
PyObject* before_call = nullptr;
PyObject* after_error = nullptr;
bool asks_always = false;

DispatchedObject* Cast(PyObject* o) {
  return reinterpret_cast<DispatchedObject*>(o);
}

// The types of nearly all arguments, told by their address alone: walking along
// the bases of a type would cost every call.
bool IsPlain(PyTypeObject* t) {
  return t == eager_type || t == symbolic_type || t == &PyLong_Type ||
         t == &PyFloat_Type || t == &PyUnicode_Type || t == &PyBool_Type ||
         t == Py_TYPE(Py_None);
}

// Lists are looked through as deep as functions take lists of tensors. Data in
// plain numbers is not searched to its end, unless `whole`.
bool HoldsWatched(PyObject* o, int depth, bool whole) {
  if (IsPlain(Py_TYPE(o))) return false;
  if (IsWatched(o)) return true;
  if (depth == 0 || !IsSequence(o)) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    // Borrowed: nothing on the way down runs Python, so the list cannot change.
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (HoldsWatched(item, depth - 1, whole)) return true;
    // A list that begins with a number or a text is data: its other items are
    // of the same kind, and there may be millions.
    if (!whole && (PyFloat_CheckExact(item) || PyLong_CheckExact(item) ||
                   PyUnicode_CheckExact(item))) {
      return false;
    }
  }
  return false;
}

// How deep lists among the arguments are looked through for types of users:
// deeper ones would cost every call of nested lists of numbers.
constexpr int kListDepth = 3;

bool AnyWatched(PyObject* const* args, Py_ssize_t n, bool whole) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (HoldsWatched(args[i], kListDepth, whole)) return true;
  }
  return false;
}

// (args, kwargs) of a vectorcall.
bool PackArguments(PyObject* const* args, size_t nargsf, PyObject* keywords,
                   Ref* tuple, Ref* dict) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  *tuple = Ref(PyTuple_New(n));
  *dict = Ref(PyDict_New());
  if (!*tuple || !*dict) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SetItem(tuple->get(), i, Ref::Borrow(args[i]).release());
  }
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (PyDict_SetItem(dict->get(), PyTuple_GET_ITEM(keywords, i),
                       args[n + i]) < 0) {
      return false;
    }
  }
  return true;
}

// A result, or null: with an error set, or without where nobody answered.
PyObject* Answer(PyObject* asked, PyObject* api, const Ref& args,
                 const Ref& kwargs, PyObject* error) {
  // NotImplemented means that no dispatcher takes these arguments.
  PyObject* answer = Called<PyObject_CallFunctionObjArgs>(
      asked, api, args.get(), kwargs.get(), error, nullptr);
  if (answer == Py_NotImplemented) Py_CLEAR(answer);
  return answer;
}

// The call raised: dispatchers of last resort answer, or the error stands.
PyObject* AfterError(PyObject* self, PyObject* const* args, size_t nargsf,
                     PyObject* keywords) {
  PyObject *type, *value, *trace;
  // The error is taken out of the interpreter first: no Python may run while
  // one is set.
  PyErr_Fetch(&type, &value, &trace);
  // Dispatchers are shown an exception, but C code may have set a type and a
  // text only.
  PyErr_NormalizeException(&type, &value, &trace);
  if (trace) PyException_SetTraceback(value, trace);
  Ref tuple, dict;
  PyObject* answer = nullptr;
  if (PackArguments(args, nargsf, keywords, &tuple, &dict)) {
    answer = Answer(after_error, self, tuple, dict, value);
  }
  if (answer || PyErr_Occurred()) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return answer;
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

PyObject* Call(PyObject* self, PyObject* const* args, size_t nargsf,
               PyObject* keywords) {
  const Py_ssize_t n =
      PyVectorcall_NARGS(nargsf) + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
  // Programs that register no type pay for one comparison here.
  if (!watched.empty() && AnyWatched(args, n, false)) [[unlikely]] {
    Ref tuple, dict;
    if (!PackArguments(args, nargsf, keywords, &tuple, &dict)) return nullptr;
    PyObject* answer = Answer(before_call, self, tuple, dict, nullptr);
    // With neither an answer nor an error the function itself is called.
    if (answer || PyErr_Occurred()) return answer;
  }
  PyObject* result =
      Called<PyObject_Vectorcall>(Cast(self)->function, args, nargsf, keywords);
  if (result) [[likely]]
    return result;
  // Dispatchers of last resort are for arguments that the function could not
  // make sense of; other errors are those of the operation itself.
  // Now the data is searched to its end: the call has failed, time no longer
  // counts, and the argument that made it fail may be the last.
  if ((!asks_always && watched.empty()) ||
      (!PyErr_ExceptionMatches(PyExc_TypeError) &&
       !PyErr_ExceptionMatches(PyExc_ValueError)) ||
      (!asks_always && !AnyWatched(args, n, true))) {
    return nullptr;
  }
  return AfterError(self, args, nargsf, keywords);
}

// What is not its own is the function's.
PyObject* GetAttribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(Cast(self)->function, name);
}

template <const char* name>
PyObject* OfFunction(PyObject* self, void*) {
  return PyObject_GetAttrString(Cast(self)->function, name);
}
constexpr char kName[] = "__name__", kQualname[] = "__qualname__",
               kModule[] = "__module__", kDoc[] = "__doc__";

PyObject* DispatchedSignature(PyObject* self, void*) {
  static PyObject* inspect = PyImport_ImportModule("inspect");
  if (inspect == nullptr) return nullptr;
  return Called<PyObject_CallMethod>(inspect, "signature", "O",
                                     Cast(self)->function);
}

PyObject* DispatchedRepr(PyObject* self) {
  Ref name(PyObject_GetAttrString(self, kName));
  if (!name) return nullptr;
  return PyUnicode_FromFormat("<function %U at %p>", name.get(), self);
}

#ifdef Py_LIMITED_API
PyObject* method_type = nullptr;  // types.MethodType
#endif

PyObject* BoundMethod(PyObject* function, PyObject* object) {
#ifdef Py_LIMITED_API
  return Called<PyObject_CallFunctionObjArgs>(method_type, function, object,
                                              nullptr);
#else
  return PyMethod_New(function, object);
#endif
}

bool FindMethodType() {
#ifdef Py_LIMITED_API
  const Ref types(PyImport_ImportModule("types"));
  method_type =
      types ? PyObject_GetAttrString(types.get(), "MethodType") : nullptr;
  return method_type != nullptr;
#else
  return true;
#endif
}

// As a function in a class it is a method.
PyObject* Get(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) {
    return Ref::Borrow(self).release();
  }
  return BoundMethod(self, object);
}

PyObject* Itself(PyObject* self, PyObject*) {
  return Ref::Borrow(self).release();
}

// Pickled by its row of api_names.txt: the function behind it may be a closure,
// which pickle refuses.
PyObject* Reduce(PyObject* self, PyObject*) {
  Ref find = Import("_names", "function_of_row");
  if (!find) return nullptr;
  return Py_BuildValue("O(O)", find.get(), Cast(self)->row);
}

void Free(PyObject* self) {
  DispatchedObject* o = Cast(self);
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_XDECREF(o->function);
  Py_XDECREF(o->row);
  Py_XDECREF(o->dict);
  // A heap type is counted by its objects; it must outlive the memory of this
  // one.
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyGetSetDef getset[] = {
    {"__name__", OfFunction<kName>, nullptr, nullptr, nullptr},
    {"__qualname__", OfFunction<kQualname>, nullptr, nullptr, nullptr},
    {"__module__", OfFunction<kModule>, nullptr, nullptr, nullptr},
    {"__doc__", OfFunction<kDoc>, nullptr, nullptr, nullptr},
    {"__signature__", Shield<DispatchedSignature>, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr,
     nullptr},
    {}};
PyMemberDef members[] = {
    {"__wrapped__", T_OBJECT, offsetof(DispatchedObject, function), READONLY,
     nullptr},
    {"_row", T_OBJECT, offsetof(DispatchedObject, row), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(DispatchedObject, vectorcall),
     READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(DispatchedObject, dict), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET,
     offsetof(DispatchedObject, weak_references), READONLY, nullptr},
    {}};
PyMethodDef methods[] = {{"__copy__", Shield<Itself>, METH_NOARGS, nullptr},
                         {"__deepcopy__", Shield<Itself>, METH_O, nullptr},
                         {"__reduce__", Shield<Reduce>, METH_NOARGS, nullptr},
                         {}};
PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Free)},
    {Py_tp_descr_get, reinterpret_cast<void*>(Get)},
    {Py_tp_getattro, reinterpret_cast<void*>(Shield<GetAttribute>)},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(Shield<DispatchedRepr>)},
    {0, nullptr}};
PyType_Spec dispatched_spec = {
    "headrace.DispatchedFunction", sizeof(DispatchedObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};

PyObject* MakeDispatched(PyObject*, PyObject* args) {
  PyObject *function, *row;
  if (!PyArg_ParseTuple(args, "OO", &function, &row)) return nullptr;
  auto* o = PyObject_New(DispatchedObject, dispatched_type);
  if (o == nullptr) return nullptr;
  o->vectorcall = Shield<Call>;
  o->function = Ref::Borrow(function).release();
  o->row = Ref::Borrow(row).release();
  o->dict = nullptr;
  o->weak_references = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* WatchType(PyObject*, PyObject* type) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "watch_type takes a type");
    return nullptr;
  }
  for (PyTypeObject* known : watched) {
    if (reinterpret_cast<PyObject*>(known) == type) Py_RETURN_NONE;
  }
  // Never released: a type whose memory is used again by another would be taken
  // for it.
  Py_INCREF(type);
  watched.push_back(reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

PyObject* SetDispatchers(PyObject*, PyObject* args) {
  PyObject *before, *after;
  int always;
  if (!PyArg_ParseTuple(args, "OOp", &before, &after, &always)) return nullptr;
  Replace(&before_call, Ref::Borrow(before).release());
  Replace(&after_error, Ref::Borrow(after).release());
  asks_always = always;
  Py_RETURN_NONE;
}

PyMethodDef dispatched_functions[] = {
    {"dispatched", Shield<MakeDispatched>, METH_VARARGS,
     "dispatched(function, row): a function that dispatchers may answer for."},
    {"watch_type", Shield<WatchType>, METH_O,
     "watch_type(type): shows arguments of the type to the dispatchers."},
    {"set_dispatchers", Shield<SetDispatchers>, METH_VARARGS,
     "set_dispatchers(before, after, all): who is asked."},
    {}};

}  // namespace

bool IsWatched(PyObject* o) {
  if (IsPlain(Py_TYPE(o))) return false;
  for (PyTypeObject* t : watched) {
    if (PyType_IsSubtype(Py_TYPE(o), t)) return true;
  }
  return false;
}

bool DispatchOperator(const char* name, PyObject* x, PyObject* y,
                      PyObject** result) {
  *result = nullptr;
  // Operators are methods of tensors and do not go by DispatchedFunction: they
  // ask here, under the name of the public function.
  if (watched.empty() || (!IsWatched(x) && !IsWatched(y))) return false;
  Ref call = Import("framework.dispatch", "call_operator");
  // True with nothing in *result: the error of the import is the answer.
  if (!call) return true;
  *result = Called<PyObject_CallFunction>(call.get(), "sOO", name, x, y);
  if (*result != Py_NotImplemented) return true;
  Py_CLEAR(*result);
  return false;
}

bool AddDispatched(PyObject* module) {
  if (!FindMethodType()) return false;
  PyObject* type = PyType_FromSpec(&dispatched_spec);
  if (type == nullptr) return false;
  dispatched_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "DispatchedFunction", type) == 0 &&
         PyModule_AddFunctions(module, dispatched_functions) == 0;
}

}  // namespace headrace::bind
