#include "bind/call/converted_call.h"

#include <algorithm>
#include <vector>

#include "bind/python/status.h"

namespace headrace::bind {
namespace {

// Set once, while Python's side is loaded; never freed.
PyObject* any_call = nullptr;
std::vector<PyTypeObject*> operation_types;

// converted_call(f, args, kwargs, scope): most calls in converted code are of
// operations, which need no conversion. They come without a frame of Python's,
// which would be walked for each node's stack. All others are Python's matter.
PyObject* ConvertedCall(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n == 4 && PyTuple_CheckExact(args[1])) [[likely]] {
    PyTypeObject* type = Py_TYPE(args[0]);
    for (PyTypeObject* t : operation_types) {
      if (t != type) continue;
      PyObject* kwargs = args[2] == Py_None ? nullptr : args[2];
      return Called<PyObject_Call>(args[0], args[1], kwargs);
    }
  }
  if (any_call == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "AutoGraph was not loaded");
    return nullptr;
  }
  return Called<PyObject_Vectorcall>(any_call, args, static_cast<size_t>(n),
                                     nullptr);
}

PyObject* SetConvertedCall(PyObject*, PyObject* given) {
  PyObject *function, *types;
  if (!PyArg_ParseTuple(given, "OO!", &function, &PyTuple_Type, &types)) {
    return nullptr;
  }
  std::vector<PyTypeObject*> found;
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); ++i) {
    PyObject* type = PyTuple_GetItem(types, i);
    if (!PyType_Check(type)) {
      PyErr_SetString(PyExc_TypeError, "types are wanted");
      return nullptr;
    }
    Py_INCREF(type);
    found.push_back(reinterpret_cast<PyTypeObject*>(type));
  }
  Py_INCREF(function);
  any_call = function;
  operation_types = std::move(found);
  Py_RETURN_NONE;
}

PyMethodDef converted_call_functions[] = {
    {"converted_call",
     reinterpret_cast<PyCFunction>(
         reinterpret_cast<void (*)()>(Shield<ConvertedCall>)),
     METH_FASTCALL, "What f(*args, **kwargs) gives, `f` converted."},
    {"set_converted_call", Shield<SetConvertedCall>, METH_VARARGS,
     "The function for all but calls of objects of `types`."},
    {}};

}  // namespace

bool AddConvertedCall(PyObject* module) {
  return PyModule_AddFunctions(module, converted_call_functions) == 0;
}

}  // namespace headrace::bind
