// Objects of Python that C++ holds for as long as it likes.
#pragma once

#include <memory>

#include "bind/python/python.h"

namespace headrace::bind {

// Whether Python can run, or is still to: not once the interpreter ends.
inline bool PythonRuns() { return Py_IsInitialized() && !PythonEnds(); }

// Let go on any thread; behind the interpreter's end it stays as it is. The GIL
// must be held. Null for a null reference.
inline std::shared_ptr<PyObject> KeptForCpp(Ref o) {
  if (!o) return nullptr;
  return std::shared_ptr<PyObject>(o.release(), [](PyObject* p) {
    if (PythonRuns()) DropAnywhere(p);
  });
}

}  // namespace headrace::bind
