#include "bind/function/raised.h"

#include <string>

#include "bind/function/kept.h"
#include "bind/python/status.h"

namespace headrace::bind {
namespace {

// Type, value and trace of what is set, made one object; null where nothing is.
Ref TakeException() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_trace(trace);
  Ref held_value(value);
  if (held_value && held_trace) {
    PyException_SetTraceback(held_value.get(), held_trace.get());
  }
  return held_value;
}

std::string TextOfObject(PyObject* o) {
  const Ref bytes(o ? PyUnicode_AsEncodedString(o, "utf-8", "backslashreplace")
                    : nullptr);
  if (!bytes) {
    PyErr_Clear();
    return "";
  }
  return PyBytes_AsString(bytes.get());
}

}  // namespace

tf::PythonError TakeRaised() {
  Ref error = TakeException();
  int code = static_cast<int>(tf::ErrorCode::kUnknown);
  std::string text = "a function of Python failed", type, trace;
  // Python words it: (code, text, type, traceback).
  static PyObject* describe = nullptr;
  if (describe == nullptr) {
    describe = Import("function.named", "described").release();
  }
  if (error && describe) {
    const Ref told(
        Called<PyObject_CallFunctionObjArgs>(describe, error.get(), nullptr));
    PyObject *text_object, *type_object, *trace_object;
    if (told && PyArg_ParseTuple(told.get(), "iUUU", &code, &text_object,
                                 &type_object, &trace_object)) {
      text = TextOfObject(text_object);
      type = TextOfObject(type_object);
      trace = TextOfObject(trace_object);
    }
  }
  PyErr_Clear();  // the error itself stands, whatever went wrong in telling it
  return tf::PythonError(static_cast<tf::ErrorCode>(code), text, type, trace,
                         KeptForCpp(std::move(error)));
}

void RaiseFromCpp(StringView who) {
  try {
    throw;
  } catch (const tf::PythonError& e) {
    auto* const exception = static_cast<PyObject*>(e.exception().get());
    if (exception != nullptr) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)),
                      exception);
      return;
    }
    RaiseStatus(
        Status(static_cast<absl::StatusCode>(e.code()), StringView(e.what())));
  } catch (const tf::Error& e) {
    RaiseStatus(
        Status(static_cast<absl::StatusCode>(e.code()), StringView(e.what())));
  } catch (const abi::__forced_unwind&) {
    Park();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    RaiseStatus(Unknown("Function ", who, " threw: ", e.what()));
  } catch (...) {
    RaiseStatus(Unknown("Function ", who, " threw"));
  }
}

}  // namespace headrace::bind
