#include "bind/python/status.h"

#include <new>
#include <string>

#include "base/guard.h"
#include "bind/python/interrupts.h"
#include "op/no_such_gradient.h"

namespace headrace::bind {

Ref Import(const char* module, const char* name) {
  std::string full = std::string("headrace.") + module;
  Ref m(Called<PyImport_ImportModule>(full.c_str()));
  if (!m) return Ref();
  return Ref(PyObject_GetAttrString(m.get(), name));
}

void RaiseCaught() {
  try {
    RaiseStatus(CaughtStatus("a call of headrace"));
  } catch (const std::bad_alloc&) {  // which may not leave a catch block's end
    PyErr_NoMemory();
  }
}

void RaiseStatus(const Status& s, bool in_graph) {
  if (RaiseInterrupt(s)) return;
  const StringView text = s.message();
  // Texts hold bytes of the user's (names of files, strings in tensors).
  Ref message(PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
  if (!message) return;
  if (in_graph && s.code() == absl::StatusCode::kInvalidArgument) {
    PyErr_SetObject(PyExc_ValueError, message.get());
    return;
  }
  // Upstream looks gradients up in a registry of Python, whose LookupError it
  // is.
  if (s.GetPayload(kNoGradient)) {
    PyErr_SetObject(PyExc_LookupError, message.get());
    return;
  }
  if (s.GetPayload(kNoSuchGradient)) {  // upstream's gradients are Python
    PyErr_SetObject(PyExc_NotImplementedError, message.get());
    return;
  }
  static PyObject* make = nullptr;
  if (make == nullptr) {
    make = Import("context.errors", "_from_status").release();
  }
  if (make == nullptr) return;
  // The classes of tf.errors are Python's; it picks one by the code.
  Ref error(Called<PyObject_CallFunction>(
      make, "iO", static_cast<int>(s.code()), message.get()));
  if (!error) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())),
                  error.get());
}

}  // namespace headrace::bind
