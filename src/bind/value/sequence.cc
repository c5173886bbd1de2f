// Nested Python sequences as tensors, by upstream's rules: the first leaf
// decides the shape and kind, integers grow to floats where a float is met.
#include <string>

#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"

namespace headrace::bind {
namespace {

bool IsNested(PyObject* o) {
  return IsSequence(o) || PyRange_Check(o) ||
         (IsArray(o) && PySequence_Check(o) && PySequence_Size(o) >= 0);
}

// An array of rank 0 is a leaf, and PySequence_Size of it fails.
bool Descend(PyObject* o) {
  bool nested = IsNested(o);
  // PySequence_Size of an array of rank 0 has set an error.
  if (PyErr_Occurred()) PyErr_Clear();
  return nested;
}

bool MixedTypes() {
  PyErr_SetString(PyExc_ValueError,
                  "Can't convert Python sequence with mixed types to Tensor.");
  return false;
}
bool NotRectangular() {
  PyErr_SetString(PyExc_ValueError,
                  "Can't convert non-rectangular Python sequence to Tensor.");
  return false;
}

// The sizes of an array after its first, which hold nothing to follow.
bool AddInnerSizes(PyObject* array, Shape* shape) {
  Ref sizes(PyObject_GetAttrString(array, "shape"));
  if (!sizes) return false;
  const Py_ssize_t n = PySequence_Size(sizes.get());
  for (Py_ssize_t i = 1; i < n && shape->rank() < Shape::kMaxRank; ++i) {
    Ref size(PySequence_GetItem(sizes.get(), i));
    const long long value = size ? PyLong_AsLongLong(size.get()) : -1;
    if (value < 0) return false;
    shape->AddDim(value);
  }
  return n >= 0;
}

// Follows the first elements down.
bool ShapeOf(PyObject* o, Shape* shape, Ref* first_leaf) {
  Ref at = Ref::Borrow(o);
  while (Descend(at.get())) {
    Py_ssize_t n = PySequence_Size(at.get());
    if (n < 0) return false;
    if (shape->rank() >= Shape::kMaxRank) {
      PyErr_SetString(PyExc_ValueError,
                      "Can't convert a sequence nested that deeply to Tensor.");
      return false;
    }
    shape->AddDim(n);
    // A list without elements ends the shape; an array still has sizes to tell.
    if (n == 0) return !IsArray(at.get()) || AddInnerSizes(at.get(), shape);
    at = Ref(PySequence_GetItem(at.get(), 0));
    if (!at) return false;
  }
  *first_leaf = std::move(at);
  return true;
}

// Calls f(leaf) for every leaf in order, checking the shape on the way.
template <typename F>
bool ForLeaves(PyObject* o, const Shape& shape, int depth, const F& f) {
  if (depth == shape.rank()) {
    // Deeper than the first leaf: the values are of two kinds.
    if (Descend(o)) {
      return MixedTypes();
    }
    return f(o);
  }
  if (!Descend(o)) return NotRectangular();
  // Exact lists and tuples give items without a call of Python.
  bool direct = PyList_CheckExact(o) || PyTuple_CheckExact(o);
  Py_ssize_t n = PySequence_Size(o);
  if (n != shape[depth]) return n < 0 ? false : NotRectangular();
  for (Py_ssize_t i = 0; i < n; ++i) {
    // Held, as f may run Python code that changes the list.
    Ref item = !direct                ? Ref(PySequence_GetItem(o, i))
               : PyList_CheckExact(o) ? Ref::Borrow(PyList_GetItem(o, i))
                                      : Ref::Borrow(PyTuple_GetItem(o, i));
    if (!item || !ForLeaves(item.get(), shape, depth + 1, f)) return false;
  }
  return true;
}

// The dtype of the whole, from the first leaf and those it must grow with.
bool InferDType(PyObject* o, const Shape& shape, PyObject* first, DType* out) {
  if (first == nullptr) {
    // Upstream's dtype for nothing.
    *out = DType::kFloat;
    return true;
  }
  DType d = ScalarDType(first);
  // NumPy's integers in lists count as Python's: int32 unless one does not fit.
  if (IsNumpyScalar(first) && IsInteger(d)) d = DType::kInt32;
  bool is_float64 = false;
  bool ok = ForLeaves(o, shape, 0, [&](PyObject* leaf) {
    DType other = ScalarDType(leaf);
    if (other == DType::kInvalid) return true;  // refused when stored
    if (other == DType::kInt64 && IsNumpyScalar(leaf)) {
      int overflow;
      Ref n(PyNumber_Long(leaf));
      long long v =
          n ? PyLong_AsLongLongAndOverflow(n.get(), &overflow) : INT64_MAX;
      if (v >= INT32_MIN && v <= INT32_MAX) other = DType::kInt32;
    }
    if (other == DType::kDouble) is_float64 = true;
    if (d == other) return true;
    // Types only grow along int32, int64, float, complex.
    if (IsInteger(d) && (IsFloating(other) || IsComplex(other))) d = other;
    if (IsFloating(d) && IsComplex(other)) d = other;
    if (d == DType::kInt32 && other == DType::kInt64) d = other;
    return true;
  });
  // As upstream: float64 only where the list begins with a scalar of NumPy.
  *out = d == DType::kFloat && is_float64 && first && IsNumpyScalar(first)
             ? DType::kDouble
             : d;
  return ok;
}

}  // namespace

bool HoldsTensors(PyObject* sequence, bool* holds) {
  *holds = false;
  const Recursion entered(" while converting a sequence to a Tensor");
  if (!entered) return false;
  Py_ssize_t n = PySequence_Size(sequence);
  // Not a sequence after all: the conversion words the error.
  if (n < 0) return PyErr_Clear(), true;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref item(PySequence_GetItem(sequence, i));
    if (!item) return PyErr_Clear(), true;
    PyObject* o = item.get();
    if (IsSequence(o)) {
      if (!HoldsTensors(o, holds)) return false;
      if (*holds) return true;
    } else if (o != Py_None && !IsArray(o) &&
               ScalarDType(o) == DType::kInvalid && !PyRange_Check(o)) {
      *holds = true;
      return true;
    }
    // The first leaf of a long list of plain data speaks for the rest.
    // Below that the usual walk is as fast.
    if (i == 0 && n > 64 && !IsSequence(o) &&
        ScalarDType(o) != DType::kInvalid) {
      for (Py_ssize_t j = 1; j < n; ++j) {
        Ref other(PySequence_GetItem(sequence, j));
        // Equal types only: a tensor among numbers still has to be found.
        if (!other || Py_TYPE(other.get()) != Py_TYPE(o)) break;
        if (j == n - 1) return true;
      }
    }
  }
  return true;
}

DType OwnDType(PyObject* o) {
  Ref at = Ref::Borrow(o);
  // Bounded, as a list may contain itself.
  for (int depth = 0; depth < Shape::kMaxRank && IsSequence(at.get());
       ++depth) {
    if (PySequence_Size(at.get()) < 1) break;
    at = Ref(PySequence_GetItem(at.get(), 0));
    if (!at) break;
  }
  if (PyErr_Occurred()) PyErr_Clear();  // the conversion will tell
  if (!at) return DType::kInvalid;
  if (IsTensor(at.get())) return ValueOf(at.get()).dtype();
  const bool numpy = IsArray(at.get()) || IsNumpyScalar(at.get());
  return numpy ? ArrayDType(at.get()) : DType::kInvalid;
}

bool SequenceToTensor(PyObject* o, DType required, Tensor* out) {
  Shape shape;
  Ref first;
  if (!ShapeOf(o, &shape, &first)) return false;
  DType d = required;
  if (d == DType::kInvalid && !InferDType(o, shape, first.get(), &d)) {
    return false;
  }
  if (d == DType::kInvalid) {
    PyErr_Format(PyExc_ValueError,
                 "Attempt to convert a value (%R) with an unsupported type "
                 "(%R) to a Tensor.",
                 first.get(),
                 reinterpret_cast<PyObject*>(Py_TYPE(first.get())));
    return false;
  }
  StatusOr<Tensor> t = Tensor::Allocate(d, shape);
  if (!t.ok()) return RaiseStatus(t.status()), false;
  int64_t i = 0;
  // Behind a number, truth values are numbers.
  const bool numbers = first && !PyBool_Check(first.get()) && d != DType::kBool;
  bool ok = ForLeaves(o, shape, 0, [&](PyObject* leaf) {
    if (numbers && PyBool_Check(leaf)) {
      // StoreScalar would refuse a truth value for some of the types.
      Ref number(PyLong_FromLong(leaf == Py_True));
      return number && StoreScalar(number.get(), *t, i++);
    }
    if (StoreScalar(leaf, *t, i++)) return true;
    if (PyErr_Occurred()) return false;
    // Without a demanded dtype the list itself is at odds; with one, the value
    // is.
    if (required == DType::kInvalid) return MixedTypes();
    return CannotConvert(o, leaf, d);
  });
  if (ok) *out = *std::move(t);
  return ok;
}

}  // namespace headrace::bind
