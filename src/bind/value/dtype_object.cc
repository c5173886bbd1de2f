#include "bind/value/dtype_object.h"

#include <array>

#include "bind/python/status.h"
#include "bind/value/numpy_array.h"

namespace headrace::bind {
namespace {

struct DTypeBase {
  PyObject_HEAD long number;
};

PyTypeObject* base_type = nullptr;
// By number; upstream's enum ends far below 256, references included.
std::array<PyObject*, 256> objects{};

PyObject* NewDType(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* given = nullptr;
  if (!PyArg_ParseTuple(args, "O", &given)) return nullptr;
  DType d = AsDType(given);
  if (d == DType::kInvalid) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError,
                   "Cannot convert the argument `type_value`: %R to a "
                   "TensorFlow DType.",
                   given);
    }
    return nullptr;
  }
  // One object a type, so that `is` works and lookups are by address.
  PyObject*& kept = objects[static_cast<int>(d)];
  if (kept == nullptr) {
    auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    kept = alloc(type, 0);
    if (kept == nullptr) return nullptr;
    reinterpret_cast<DTypeBase*>(kept)->number = static_cast<int>(d);
  }
  return Ref::Borrow(kept).release();
}

PyObject* GetNumber(PyObject* self, void*) {
  return PyLong_FromLong(reinterpret_cast<DTypeBase*>(self)->number);
}

PyObject* GetName(PyObject* self, void*) {
  StringView name = DTypePythonName(DTypeOfObject(self));
  return PyUnicode_FromStringAndSize(name.data(), name.size());
}

PyGetSetDef dtype_getset[] = {{"_number", Shield<GetNumber>, nullptr,
                               "The number in the DataType enum.", nullptr},
                              {"name", Shield<GetName>, nullptr,
                               "The type's name, such as 'float32'.", nullptr},
                              {}};

PyType_Slot dtype_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(Shield<NewDType>)},
    {Py_tp_getset, dtype_getset},
    {0, nullptr}};
PyType_Spec dtype_spec = {"headrace._headrace.DTypeBase", sizeof(DTypeBase), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                          dtype_slots};

DType FromPythonType(PyObject* o) {
  // Upstream's defaults for Python's types.
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::kFloat;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt32;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  // np.object_ arrays hold strings, and so object stands for them.
  if (o == reinterpret_cast<PyObject*>(&PyBytes_Type) ||
      o == reinterpret_cast<PyObject*>(&PyUnicode_Type) ||
      o == reinterpret_cast<PyObject*>(&PyBaseObject_Type)) {
    return DType::kString;
  }
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    return DType::kComplex128;
  }
  return DType::kInvalid;
}

}  // namespace

bool IsDTypeObject(PyObject* o) { return PyObject_TypeCheck(o, base_type); }

DType DTypeOfObject(PyObject* o) {
  return static_cast<DType>(reinterpret_cast<DTypeBase*>(o)->number);
}

PyObject* DTypeObject(DType d) {
  PyObject* kept = objects[static_cast<int>(d)];
  if (kept) [[likely]]
    return Ref::Borrow(kept).release();
  PyErr_Format(PyExc_TypeError, "no Python object for dtype %d",
               static_cast<int>(d));
  return nullptr;
}

DType AsDType(PyObject* o) {
  if (IsDTypeObject(o)) return DTypeOfObject(o);
  // True is no type, though it is the number 1.
  if (PyLong_Check(o) && !PyBool_Check(o)) {
    long n = PyLong_AsLong(o);
    if (n == -1 && PyErr_Occurred()) PyErr_Clear();
    // (The cast may have cut off a number beyond 32 bits.)
    return DTypeIsValid(static_cast<int>(n)) && n == static_cast<int>(n)
               ? static_cast<DType>(n)
               : DType::kInvalid;
  }
  if (PyUnicode_Check(o)) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (text == nullptr) return DType::kInvalid;
    StatusOr<DType> d = DTypeFromName(StringView(text, size));
    if (d.ok()) return *d;
  }
  DType d = FromPythonType(o);
  // NumPy last, as it takes nearly anything for a dtype.
  return d != DType::kInvalid ? d : DTypeOfNumpy(o);
}

bool AddDTypeObject(PyObject* module) {
  PyObject* type = PyType_FromSpec(&dtype_spec);
  if (type == nullptr) return false;
  base_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "DTypeBase", type) == 0;
}

}  // namespace headrace::bind
