// Shapes between C++ and tf.TensorShape, whose class is written in Python and
// keeps its sizes in `_dims`: a tuple of ints and Nones, or None.
#include <string>

#include "bind/value/tensor_object.h"

namespace headrace::bind {
namespace {

PyObject* shape_class = nullptr;

bool AsDim(PyObject* o, int64_t* dim) {
  if (o == Py_None) {
    *dim = Shape::kUnknown;
    return true;
  }
  // __index__ and not __int__: 2.5 is no size.
  Ref index(PyNumber_Index(o));
  if (!index) {
    // Whatever says what size it stands for, as Dimension of TensorFlow 1.
    PyErr_Clear();
    Ref value(PyObject_GetAttrString(o, "value"));
    if (!value) {
      PyErr_Clear();
      return Raise(PyExc_TypeError,
                   "Dimension value must be integer or None or have an "
                   "__index__ method, got value '%R'",
                   o);
    }
    return AsDim(value.get(), dim);
  }
  *dim = PyLong_AsLongLong(index.get());
  if (*dim == -1 && PyErr_Occurred()) return false;
  // -1 stands for unknown, as in protos; anything below is a mistake.
  if (*dim < -1) {
    return Raise(PyExc_ValueError, "Dimension %S must be >= 0", index.get());
  }
  return true;
}

}  // namespace

PyObject* SizesOf(const Shape& s) {
  if (!s.known_rank()) Py_RETURN_NONE;
  Ref dims(PyTuple_New(s.rank()));
  if (!dims) return nullptr;
  for (int i = 0; i < s.rank(); ++i) {
    PyObject* d =
        s[i] < 0 ? Ref::Borrow(Py_None).release() : PyLong_FromLongLong(s[i]);
    if (d == nullptr) return nullptr;
    PyTuple_SetItem(dims.get(), i, d);
  }
  return dims.release();
}

void SetShapeClass(PyObject* cls) {
  Py_XINCREF(cls);
  Replace(&shape_class, cls);
}

PyObject* ShapeObject(const Shape& s) {
  if (shape_class == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "headrace is not fully imported");
    return nullptr;
  }
  Ref dims(SizesOf(s));
  if (!dims) return nullptr;
  // Past the constructor, a Python function that would look at each size again.
  auto* type = reinterpret_cast<PyTypeObject*>(shape_class);
  static PyObject* const name = PyUnicode_InternFromString("_dims");
  Ref made(PyType_GenericAlloc(type, 0));
  if (!made || PyObject_GenericSetAttr(made.get(), name, dims.get()) != 0) {
    return nullptr;
  }
  return made.release();
}

bool IsShapeObject(PyObject* o) {
  // Exactly this class: a subclass may have other _dims.
  return shape_class &&
         Py_TYPE(o) == reinterpret_cast<PyTypeObject*>(shape_class);
}

bool AsShape(PyObject* o, Shape* out) {
  Ref held = Ref::Borrow(o);
  if (IsShapeObject(o)) {
    held = Ref(PyObject_GetAttrString(o, "_dims"));
    if (!held) return false;
  }
  if (held.get() == Py_None) {
    *out = Shape::UnknownRank();
    return true;
  }
  absl::InlinedVector<int64_t, 8> dims;
  // A single number is a shape of rank 1.
  if (PyIndex_Check(held.get())) {
    dims.resize(1);
    if (!AsDim(held.get(), &dims[0])) return false;
  } else {
    Ref items(PySequence_Fast(held.get(), "a shape must be a sequence"));
    if (!items) return false;
    Py_ssize_t n = PySequence_Size(items.get());
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref item(PySequence_GetItem(items.get(), i));
      if (!item || !AsDim(item.get(), &dims.emplace_back())) return false;
    }
  }
  StatusOr<Shape> s = Shape::Make(dims, /*allow_unknown=*/true);
  if (!s.ok()) {
    PyErr_SetString(PyExc_ValueError,
                    std::string(s.status().message()).c_str());
    return false;
  }
  *out = *std::move(s);
  return true;
}

}  // namespace headrace::bind
