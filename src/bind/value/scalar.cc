// Python numbers and strings as elements of tensors.
#include <string>

#include "bind/value/convert.h"
#include "bind/value/numpy_array.h"

namespace headrace::bind {
namespace {

// False when a conversion failed: with an error set where the number was too
// large, for which nothing may stand, or memory ended, and without one where it
// was no number.
bool Failed() {
  if (PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
  const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError);
  PyErr_Clear();
  return too_large ? RaiseOutOfRange() : false;
}

// Integers of 64 bits wrap around in fewer as a cast in C does.
template <typename T>
bool StoreInt(PyObject* o, T* to) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    const unsigned long long v = PyLong_AsUnsignedLongLong(o);
    if (v == ~0ull && PyErr_Occurred()) return Failed();
    *to = v;
  } else {
    const long long v = PyLong_AsLongLong(o);
    if (v == -1 && PyErr_Occurred()) return Failed();
    *to = static_cast<T>(v);
  }
  return true;
}

bool AsDouble(PyObject* o, double* d) {
  *d = PyFloat_AsDouble(o);
  // -1.0 is a number as well as the sign of an error.
  return *d != -1.0 || !PyErr_Occurred() || Failed();
}

bool AsString(PyObject* o, std::string* out) {
  Py_ssize_t size;
  if (PyUnicode_Check(o)) {
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    // Lone surrogates have no UTF-8.
    if (text == nullptr && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
      PyErr_SetString(PyExc_ValueError,
                      "Error converting unicode string while converting Python "
                      "sequence to Tensor.");
    }
    if (text == nullptr) return false;
    out->assign(text, size);
    return true;
  }
  char* bytes;
  if (!PyBytes_Check(o) || PyBytes_AsStringAndSize(o, &bytes, &size) < 0) {
    PyErr_Clear();
    return false;
  }
  out->assign(bytes, size);
  return true;
}

bool IsIntLike(PyObject* o) {
  return PyLong_Check(o) || (IsNumpyScalar(o) && IsInteger(ArrayDType(o)));
}
bool IsBoolLike(PyObject* o) {
  return PyBool_Check(o) || (IsNumpyScalar(o) && ArrayDType(o) == DType::kBool);
}
bool IsRealLike(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o)) return true;
  if (!IsNumpyScalar(o)) return false;
  DType d = ArrayDType(o);
  return IsInteger(d) || IsFloating(d) || d == DType::kBool;
}

template <typename T>
constexpr bool kIsComplex =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
template <typename T>
constexpr bool kIsSmallFloat =
    !std::is_integral_v<T> && !std::is_floating_point_v<T> && !kIsComplex<T>;

using Stored =
    TypeList<float, double, int32_t, int64_t, half, bfloat16, complex64,
             complex128, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t,
             float8_e5m2, float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz,
             float8_e5m2fnuz>;

// The types of numbers that upstream makes of a Python truth value.
template <typename T>
constexpr bool kTakesTruth =
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
    std::is_same_v<T, uint64_t> || std::is_same_v<T, half> ||
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, complex128>;

template <typename T>
bool StoreNumber(PyObject* o, T* to) {
  // (bool is a subclass of int: it has to be refused before.)
  if (IsBoolLike(o) && !(kTakesTruth<T> && PyBool_Check(o))) return false;
  if constexpr (std::is_integral_v<T>) {
    if (!IsIntLike(o)) return false;
    if (PyLong_Check(o)) return StoreInt(o, to);
    Ref n(PyNumber_Long(o));
    if (!n) return Failed();
    return StoreInt(n.get(), to);
  } else if constexpr (kIsComplex<T>) {
    if (!IsRealLike(o) && !PyComplex_Check(o) &&
        !(IsNumpyScalar(o) && IsComplex(ArrayDType(o)))) {
      return false;
    }
    // Takes floats and ints, too.
    double re = PyComplex_RealAsDouble(o), im = PyComplex_ImagAsDouble(o);
    if (PyErr_Occurred()) return Failed();
    *to = T(re, im);
    return true;
  } else {
    double d;
    if (!IsRealLike(o) || !AsDouble(o, &d)) return false;
    // By way of float32, as upstream's: rounding twice may differ by one in the
    // last place from rounding once.
    if constexpr (kIsSmallFloat<T>) {
      *to = T(static_cast<float>(d));
    } else {
      *to = static_cast<T>(d);
    }
    return true;
  }
}

}  // namespace

bool RaiseOutOfRange() {
  PyErr_SetString(PyExc_ValueError,
                  "Can't convert Python sequence with out-of-range integer to "
                  "Tensor.");
  return false;
}

bool StoreScalar(PyObject* o, const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kString) {
    return AsString(o, &t.data<std::string>()[i]);
  }
  if (t.dtype() == DType::kBool) {
    if (!IsBoolLike(o)) return false;
    t.data<bool>()[i] = PyObject_IsTrue(o) == 1;
    return true;
  }
  // Quantized numbers are kept as the integers that they are.
  switch (t.dtype()) {
    case DType::kQint8:
      return StoreNumber(o, static_cast<int8_t*>(t.raw()) + i);
    case DType::kQuint8:
      return StoreNumber(o, static_cast<uint8_t*>(t.raw()) + i);
    case DType::kQint16:
      return StoreNumber(o, static_cast<int16_t*>(t.raw()) + i);
    case DType::kQuint16:
      return StoreNumber(o, static_cast<uint16_t*>(t.raw()) + i);
    case DType::kQint32:
      return StoreNumber(o, static_cast<int32_t*>(t.raw()) + i);
    default:
      break;
  }
  bool ok = false;
  DispatchDType(t.dtype(), Stored{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ok = StoreNumber(o, t.data<T>() + i);
  });
  return ok;
}

DType ScalarDType(PyObject* o) {
  // Exact types first, as subclasses (np.float64 is one) have dtypes of their
  // own.
  if (PyFloat_CheckExact(o)) return DType::kFloat;
  if (PyBool_Check(o)) return DType::kBool;
  if (PyLong_Check(o)) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    // An int is int32 where it fits, as upstream's tf.constant has it.
    return overflow == 0 && v >= INT32_MIN && v <= INT32_MAX ? DType::kInt32
                                                             : DType::kInt64;
  }
  if (PyUnicode_Check(o) || PyBytes_Check(o)) return DType::kString;
  if (IsNumpyScalar(o)) return ArrayDType(o);
  // Other subclasses of float are floats.
  if (PyFloat_Check(o)) return DType::kFloat;
  if (PyComplex_Check(o)) return DType::kComplex128;
  return DType::kInvalid;
}

}  // namespace headrace::bind
