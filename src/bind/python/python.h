// What every file of the bindings starts from: Python, and owned references.
#pragma once

// Before Python.h: lengths of "#" formats are Py_ssize_t; without it such calls
// fail.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <new>
#include <string>
#include <utility>

#include "base/flush_denormals.h"
#include "base/threads.h"

#ifdef Py_LIMITED_API
#include <dlfcn.h>
#include <string.h>

// What the stable ABI (Python 3.12 on) has as functions alone.
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyList_GET_SIZE PyList_Size
#define PyList_GET_ITEM PyList_GetItem
// No part of it, but every CPython has them, and nothing else does what they
// do: a state that is deleted once the GIL is free may be gone with Python.
extern "C" PyAPI_FUNC(int) PyGILState_Check(void);
extern "C" PyAPI_FUNC(void) PyThreadState_DeleteCurrent(void);
#endif

namespace headrace::bind {

// Once the interpreter ends, Python ends every other thread that asks for the
// GIL, by unwinding its stack. Frames of C++ cannot stand that: destructors
// would drop references without the GIL, and what is noexcept ends the process.
// So whatever takes the GIL, or calls Python code for long, does it in here:
// f(), and where Python would end the thread it stops here for good instead.
[[noreturn]] inline void Park() {
  for (;;) pause();
}
template <typename F>
decltype(auto) OrPark(F&& f) {
  try {
    return f();
  } catch (const abi::__forced_unwind&) {
    Park();
  }
}

// Called<PyObject_Call>(...): a call of Python's API that runs Python code.
template <auto f, typename... Args>
auto Called(Args... args) {
  return OrPark([&] { return f(args...); });
}

// Drops a reference, which may run Python code; null allowed.
inline void Drop(PyObject* p) {
  if (p) OrPark([p] { Py_DECREF(p); });
}

// An owned reference to a Python object; null allowed. The GIL must be held.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : p_(owned) {}
  static Ref Borrow(PyObject* p) {
    Py_XINCREF(p);
    return Ref(p);
  }
  Ref(const Ref& o) : p_(o.p_) { Py_XINCREF(p_); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { Drop(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// A str's text, which lives as long as it; null, with an error set, where it
// has no such form or is no str.
inline const char* Utf8Of(PyObject* text) {
  return PyUnicode_AsUTF8AndSize(text, nullptr);
}

// Puts a new reference in the place of an old one, which goes last.
inline void Replace(PyObject** place, PyObject* now) {
  Drop(std::exchange(*place, now));
}

// Whether this thread may call Python.
inline bool HoldsGil() { return PyGILState_Check() != 0; }

// Whether the interpreter goes down.
inline bool PythonEnds() {
#ifdef Py_LIMITED_API
  // Its name has changed: what is there is found at run time.
  using Ends = int (*)();
  static const Ends ends = [] {
    void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");  // from 3.13 on
    if (found == nullptr) found = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return reinterpret_cast<Ends>(found);
  }();
  return ends != nullptr && ends() != 0;
#elif PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// What Python's own messages call an object's type.
inline std::string NameOfType(PyObject* o) {
#ifdef Py_LIMITED_API
  PyTypeObject* type = Py_TYPE(o);
  const Ref name(PyType_GetName(type));
  const char* utf8 = name ? Utf8Of(name.get()) : nullptr;
  std::string text = utf8 ? utf8 : "object";
  // Types of C have their module in front, unless it is Python itself.
  if (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) return text;
  const Ref module(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  const char* of = module ? Utf8Of(module.get()) : nullptr;
  if (of != nullptr && strcmp(of, "builtins") != 0) {
    text = std::string(of) + "." + text;
  }
  PyErr_Clear();
  return text;
#else
  return Py_TYPE(o)->tp_name;
#endif
}

// Lets other Python threads run while it lives.
class WithoutGil {
 public:
  explicit WithoutGil(bool really = true)
      : state_(really ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) OrPark([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Whose threads run Python here: set when the module is made.
inline PyInterpreterState* interpreter = nullptr;

// Holds the GIL while it lives, on any thread. Python keeps a state for each
// thread that runs it; PyGILState_Ensure would end the process where it has no
// memory for one. Then std::bad_alloc is thrown, or nothing held where the
// caller says std::nothrow and asks.
class WithGil {
 public:
  WithGil() : WithGil(std::nothrow) {
    if (!held_) throw std::bad_alloc();
  }
  explicit WithGil(std::nothrow_t) {
    if (PyGILState_GetThisThreadState() == nullptr) {
      // The thread-local data of Python's libraries, too, NumPy's among them.
      if (!PrepareThread(kForPython)) return;
#if PY_VERSION_HEX < 0x030C0000
      // Python 3.11's does not look whether there was memory, so this does: a
      // multiple of what it needs, to leave room for other threads.
      if (!threads::HasRoomFor(8 * sizeof(PyThreadState))) return;
#endif
      made_ = PyThreadState_New(interpreter);
      if (made_ == nullptr) return;
      OrPark([this] { PyEval_RestoreThread(made_); });
    } else {
      state_ = OrPark([] { return PyGILState_Ensure(); });
    }
    held_ = true;
  }
  ~WithGil() {
    if (!held_) return;
    if (made_ != nullptr) {
      // Runs destructors of what Python kept for the thread.
      OrPark([this] { PyThreadState_Clear(made_); });
      PyThreadState_DeleteCurrent();
    } else {
      PyGILState_Release(state_);
    }
  }
  WithGil(const WithGil&) = delete;
  explicit operator bool() const { return held_; }

 private:
  const FlushDenormals plain_{false};  // kernels may flush them, Python not
  bool held_ = false;
  PyThreadState* made_ = nullptr;  // by this object
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

// Drops a reference, on any thread. Where there is no memory to run Python in
// this one the object stays for good.
inline void DropAnywhere(PyObject* p) {
  if (const WithGil locked{std::nothrow}) Drop(p);
}

// A step of a walk that recurses over what programs nest, which may contain
// itself. False where it is too deep; a RecursionError is then set.
class Recursion {
 public:
  explicit Recursion(const char* where)
      : entered_(Py_EnterRecursiveCall(where) == 0) {}
  ~Recursion() {
    if (entered_) Py_LeaveRecursiveCall();
  }
  Recursion(const Recursion&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  const bool entered_;
};

// Raises `type` with repr(value) in place of the first %R.
inline bool Raise(PyObject* type, const char* format, PyObject* value) {
  PyErr_Format(type, format, value);
  return false;
}

}  // namespace headrace::bind
