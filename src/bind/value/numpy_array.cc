#include "bind/value/numpy_array.h"

// NumPy's interface of 1.22 and nothing older, so that one build runs with it
// and all later ones, 2.x too.
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <array>
#include <cstring>
#include <string>

#include "base/numbers/bools.h"
#include "bind/python/status.h"

namespace headrace::bind {
namespace {

// NumPy's C interface is loaded where it is first needed: to import NumPy takes
// longer than all else that `headrace show` does.
[[gnu::cold]] bool LoadNumpy() {
  return OrPark([] { return _import_array(); }) >= 0;
}

// False with an error set.
bool NeedNumpy() {
  if (PyArray_API != nullptr) [[likely]]
    return true;
  return LoadNumpy();
}

// Before anybody has imported NumPy there are no objects of its types. An error
// that is set stays as it is.
[[gnu::cold]] bool LoadNumpyIfImported() {
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  const Ref name(PyUnicode_FromString("numpy"));
  const Ref numpy(name ? PyImport_GetModule(name.get()) : nullptr);
  const bool loaded = numpy && LoadNumpy();
  PyErr_Clear();
  PyErr_Restore(type, error, traceback);
  return loaded;
}

// Whether there can be objects of NumPy's types; its interface is loaded then.
bool HaveNumpy() {
  if (PyArray_API != nullptr) [[likely]]
    return true;
  return LoadNumpyIfImported();
}

// Type numbers of NumPy's own types; -1: none.
int OwnTypeNumber(DType d) {
  switch (d) {
    case DType::kFloat:
      return NPY_FLOAT;
    case DType::kDouble:
      return NPY_DOUBLE;
    case DType::kHalf:
      return NPY_HALF;
    case DType::kInt8:
    // Quantized numbers show as the integers that they are stored as.
    case DType::kQint8:
      return NPY_INT8;
    case DType::kInt16:
    case DType::kQint16:
      return NPY_INT16;
    case DType::kInt32:
    case DType::kQint32:
      return NPY_INT32;
    case DType::kInt64:
      return NPY_INT64;
    case DType::kUint8:
    case DType::kQuint8:
      return NPY_UINT8;
    case DType::kUint16:
    case DType::kQuint16:
      return NPY_UINT16;
    case DType::kUint32:
      return NPY_UINT32;
    case DType::kUint64:
      return NPY_UINT64;
    case DType::kBool:
      return NPY_BOOL;
    case DType::kComplex64:
      return NPY_COMPLEX64;
    case DType::kComplex128:
      return NPY_COMPLEX128;
    // NumPy has no strings of any length but objects.
    case DType::kString:
      return NPY_OBJECT;
    default:
      return -1;
  }
}

DType OfTypeNumber(int n) {
  switch (n) {
    case NPY_FLOAT:
      return DType::kFloat;
    case NPY_DOUBLE:
      return DType::kDouble;
    case NPY_HALF:
      return DType::kHalf;
    case NPY_BYTE:
      return DType::kInt8;
    case NPY_SHORT:
      return DType::kInt16;
    case NPY_INT:
      return DType::kInt32;
    case NPY_LONG:
      // The C library decides whether long is 64 bits; NPY_LONG and
      // NPY_LONGLONG are distinct types even where both are.
      return sizeof(long) == 8 ? DType::kInt64 : DType::kInt32;
    case NPY_LONGLONG:
      return DType::kInt64;
    case NPY_UBYTE:
      return DType::kUint8;
    case NPY_USHORT:
      return DType::kUint16;
    case NPY_UINT:
      return DType::kUint32;
    case NPY_ULONG:
      return sizeof(long) == 8 ? DType::kUint64 : DType::kUint32;
    case NPY_ULONGLONG:
      return DType::kUint64;
    case NPY_BOOL:
      return DType::kBool;
    case NPY_CFLOAT:
      return DType::kComplex64;
    case NPY_CDOUBLE:
      return DType::kComplex128;
    case NPY_OBJECT:
    case NPY_STRING:
    case NPY_UNICODE:
      return DType::kString;
    default:
      return DType::kInvalid;
  }
}

// The small types that the ml_dtypes package gives to NumPy.
struct MlType {
  DType dtype;
  const char* name;
  PyArray_Descr* descr;
};
std::array<MlType, 10> ml_types{{
    {DType::kBfloat16, "bfloat16", nullptr},
    {DType::kFloat8E5m2, "float8_e5m2", nullptr},
    {DType::kFloat8E4m3fn, "float8_e4m3fn", nullptr},
    {DType::kFloat8E4m3fnuz, "float8_e4m3fnuz", nullptr},
    {DType::kFloat8E4m3b11fnuz, "float8_e4m3b11fnuz", nullptr},
    {DType::kFloat8E5m2fnuz, "float8_e5m2fnuz", nullptr},
    {DType::kInt4, "int4", nullptr},
    {DType::kUint4, "uint4", nullptr},
    {DType::kInt2, "int2", nullptr},
    {DType::kUint2, "uint2", nullptr},
}};

bool LoadMlTypes() {
  // At first need: ml_dtypes takes time to import, and most programs have no
  // bfloat16 arrays.
  static bool loaded = false;
  if (loaded) return true;
  Ref module(PyImport_ImportModule("ml_dtypes"));
  if (!module) return false;
  for (MlType& m : ml_types) {
    Ref type(PyObject_GetAttrString(module.get(), m.name));
    if (!type) {  // an older ml_dtypes knows fewer
      PyErr_Clear();
      continue;
    }
    if (!PyArray_DescrConverter(type.get(), &m.descr)) return false;
  }
  loaded = true;
  return true;
}

DType OfDescr(PyArray_Descr* descr) {
  int n = descr->type_num;
  // Types beyond are those of packages, ml_dtypes' among them.
  if (n < NPY_USERDEF) return OfTypeNumber(n);
  if (!LoadMlTypes()) {
    PyErr_Clear();
    return DType::kInvalid;
  }
  for (const MlType& m : ml_types) {
    if (m.descr && m.descr->type_num == n) return m.dtype;
  }
  return DType::kInvalid;
}

PyArray_Descr* DescrOf(DType d) {
  int n = OwnTypeNumber(d);
  if (n >= 0) return PyArray_DescrFromType(n);
  if (!LoadMlTypes()) return nullptr;
  for (const MlType& m : ml_types) {
    if (m.dtype == d && m.descr) {
      Py_INCREF(reinterpret_cast<PyObject*>(m.descr));
      return m.descr;
    }
  }
  std::string name(DTypePythonName(d));
  PyErr_Format(PyExc_NotImplementedError,
               "Cannot convert a Tensor of dtype %s to a NumPy array.",
               name.c_str());
  return nullptr;
}

bool SetString(PyObject* item, std::string* out) {
  char* bytes;
  Py_ssize_t size;
  if (PyBytes_Check(item)) {
    if (PyBytes_AsStringAndSize(item, &bytes, &size) < 0) return false;
    out->assign(bytes, size);
    return true;
  }
  if (PyUnicode_Check(item)) {
    const char* text = PyUnicode_AsUTF8AndSize(item, &size);
    if (text == nullptr) return false;
    out->assign(text, size);
    return true;
  }
  PyErr_Format(PyExc_ValueError,
               "Failed to convert a NumPy array to a Tensor (Unsupported "
               "object type %s).",
               NameOfType(item).c_str());
  return false;
}

bool StringsToTensor(PyArrayObject* array, Tensor* t) {
  // Fixed-width strings become objects first: bytes or str, one by one.
  Ref objects(PyArray_FROMANY(reinterpret_cast<PyObject*>(array), NPY_OBJECT, 0,
                              0, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_FORCECAST));
  if (!objects) return false;
  auto* o = reinterpret_cast<PyArrayObject*>(objects.get());
  auto* items = static_cast<PyObject**>(PyArray_DATA(o));
  for (int64_t i = 0; i < t->num_elements(); ++i) {
    if (!SetString(items[i], &t->data<std::string>()[i])) return false;
  }
  return true;
}

Shape ShapeOfArray(PyArrayObject* a) {
  Shape s;
  for (int i = 0; i < PyArray_NDIM(a); ++i) s.AddDim(PyArray_DIM(a, i));
  return s;
}

void RaiseStatusAsValueError(const Status& s) {
  // As upstream: shapes of arrays that no tensor has are ValueErrors.
  PyErr_SetString(PyExc_ValueError, std::string(s.message()).c_str());
}

PyObject* StringArray(const Tensor& t, int rank, npy_intp* dims) {
  Ref array(PyArray_SimpleNew(rank, dims, NPY_OBJECT));
  if (!array) return nullptr;
  auto* a = reinterpret_cast<PyArrayObject*>(array.get());
  auto** items = static_cast<PyObject**>(PyArray_DATA(a));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const std::string& s = t.data<std::string>()[i];
    PyObject* bytes = PyBytes_FromStringAndSize(s.data(), s.size());
    if (bytes == nullptr) return nullptr;
    // NumPy fills new object arrays with None or null.
    Py_XDECREF(items[i]);
    items[i] = bytes;
  }
  return array.release();
}

}  // namespace

DType DTypeOfNumpy(PyObject* o) {
  if (!NeedNumpy()) {
    PyErr_Clear();
    return DType::kInvalid;
  }
  if (!PyArray_DescrCheck(o) && !PyType_Check(o) && !PyUnicode_Check(o)) {
    // An object that carries its dtype, as pandas and friends have.
    return DType::kInvalid;
  }
  // NumPy's one-letter codes are no names of types here.
  if (PyUnicode_Check(o) && PyUnicode_GetLength(o) < 2) return DType::kInvalid;
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(o, &descr) || descr == nullptr) {
    PyErr_Clear();
    return DType::kInvalid;
  }
  DType d = OfDescr(descr);
  // np.dtype(SomeClass) is object for any class.
  if (d == DType::kString && PyType_Check(o) && descr->type_num == NPY_OBJECT &&
      o != reinterpret_cast<PyObject*>(&PyObjectArrType_Type)) {
    d = DType::kInvalid;  // any class would do for NumPy
  }
  Py_DECREF(descr);
  return d;
}

PyObject* NumpyDType(DType d) {
  if (!NeedNumpy()) return nullptr;
  // A reference's array has the type of what it refers to.
  return reinterpret_cast<PyObject*>(DescrOf(BaseType(d)));
}

bool IsArray(PyObject* o) { return HaveNumpy() && PyArray_Check(o); }
bool IsNumpyScalar(PyObject* o) {
  return HaveNumpy() && PyArray_CheckScalar(o);
}

DType ArrayDType(PyObject* array) {
  if (!HaveNumpy()) return DType::kInvalid;
  if (PyArray_Check(array)) {
    return OfDescr(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array)));
  }
  PyArray_Descr* descr = PyArray_DescrFromScalar(array);
  if (descr == nullptr) {
    PyErr_Clear();
    return DType::kInvalid;
  }
  DType d = OfDescr(descr);
  Py_DECREF(descr);
  return d;
}

namespace {

// Takes the values of an array of the tensor's dtype and size; a view of other
// numbers as bools may hold any bytes.
void CopyValues(PyArrayObject* from, Tensor* to) {
  if (to->bytes()) std::memcpy(to->raw(), PyArray_DATA(from), to->bytes());
  if (to->dtype() == DType::kBool) MakeBools(to->raw(), to->bytes());
}

}  // namespace

[[gnu::hot]] bool ArrayToTensor(PyObject* object, DType wanted, Tensor* out) {
  if (!NeedNumpy()) return false;
  // Scalars become arrays of rank 0.
  Ref held = PyArray_Check(object)
                 ? Ref::Borrow(object)
                 : Ref(PyArray_FromAny(object, nullptr, 0, 0, 0, nullptr));
  if (!held) return false;
  auto* a = reinterpret_cast<PyArrayObject*>(held.get());
  DType own = OfDescr(PyArray_DESCR(a));
  if (own == DType::kInvalid) {
    Ref name(PyObject_Str(reinterpret_cast<PyObject*>(PyArray_DESCR(a))));
    return Raise(PyExc_ValueError,
                 "Failed to convert a NumPy array to a Tensor (Unsupported "
                 "numpy type: %S).",
                 name.get());
  }
  DType d = wanted == DType::kInvalid ? own : wanted;
  StatusOr<Shape> shape = Shape::Make(ShapeOfArray(a).dims());
  if (!shape.ok()) return RaiseStatusAsValueError(shape.status()), false;
  StatusOr<Tensor> t = Tensor::Allocate(d, *shape);
  if (!t.ok()) return RaiseStatus(t.status()), false;
  if (d == DType::kString) {
    if (!StringsToTensor(a, &*t)) return false;
    *out = *std::move(t);
    return true;
  }
  PyArray_Descr* descr = DescrOf(d);
  if (descr == nullptr) return false;
  // Dense, aligned and in the machine's byte order: one copy, no cast.
  if (own == d && PyArray_ISCARRAY_RO(a)) {
    Py_DECREF(descr);
    CopyValues(a, &*t);
    *out = *std::move(t);
    return true;
  }
  // steals descr
  // Casts are forced as upstream's are: float64 to float32 loses digits without
  // a word.
  Ref cast(PyArray_FromArray(
      a, descr,
      NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST | NPY_ARRAY_NOTSWAPPED));
  if (!cast) return false;
  CopyValues(reinterpret_cast<PyArrayObject*>(cast.get()), &*t);
  *out = *std::move(t);
  return true;
}

bool ViewOfArray(PyObject* array, Tensor* out) {
  if (!NeedNumpy()) return false;
  auto* a = reinterpret_cast<PyArrayObject*>(array);
  const DType d =
      PyArray_Check(array) ? OfDescr(PyArray_DESCR(a)) : DType::kInvalid;
  // A bool's byte may be anything in an array.
  if (!IsPlain(d) || d == DType::kInvalid || d == DType::kBool ||
      !PyArray_ISCARRAY_RO(a)) {
    return ArrayToTensor(array, DType::kInvalid, out);
  }
  StatusOr<Shape> shape = Shape::Make(ShapeOfArray(a).dims());
  if (!shape.ok()) return RaiseStatusAsValueError(shape.status()), false;
  auto release = [](void* owner) {
    // At the end of the process the array goes with it.
    if (Py_IsInitialized()) DropAnywhere(static_cast<PyObject*>(owner));
  };
  *out = Tensor::Wrap(d, *std::move(shape), PyArray_DATA(a), PyArray_NBYTES(a),
                      Py_NewRef(array), release);
  return true;
}

[[gnu::hot]] PyObject* TensorToArray(const Tensor& t, PyObject* owner,
                                     bool copy) {
  if (!NeedNumpy()) return nullptr;
  int rank = t.rank();
  // NumPy 2 allows 64 dimensions, 1.x 32: one build keeps to what both have.
  if (rank > NPY_MAXDIMS_LEGACY_ITERS) {
    RaiseStatus(InvalidArgument("Cannot convert tensor with ", rank,
                                " dimensions to NumPy array. NumPy arrays can "
                                "have at most ",
                                NPY_MAXDIMS_LEGACY_ITERS, " dimensions"));
    return nullptr;
  }
  npy_intp dims[NPY_MAXDIMS_LEGACY_ITERS];
  for (int i = 0; i < rank; ++i) dims[i] = t.dim(i);
  if (t.dtype() == DType::kString) return StringArray(t, rank, dims);
  PyArray_Descr* descr = DescrOf(t.dtype());
  if (descr == nullptr) return nullptr;
  if (copy) {
    PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims,
                                           nullptr, nullptr, 0, nullptr);
    // (An empty tensor has no memory to copy from.)
    if (array && t.bytes()) {
      std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)),
                  t.raw(), t.bytes());
    }
    return array;
  }
  // Flags 0: read-only, as the memory belongs to a tensor, which never changes.
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims,
                                         nullptr, t.raw(), 0, nullptr);
  if (array == nullptr) return nullptr;
  // SetBaseObject takes a reference, even where it fails.
  Py_INCREF(owner);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner)) {
    Py_DECREF(array);
    return nullptr;
  }
  return array;
}

PyObject* TensorToNumpy(const Tensor& t, PyObject* owner) {
  if (t.rank() == 0) {
    if (t.dtype() == DType::kString) {
      const std::string& s = t.scalar<std::string>();
      return PyBytes_FromStringAndSize(s.data(), s.size());
    }
    if (!NeedNumpy()) return nullptr;
    PyArray_Descr* descr = DescrOf(t.dtype());
    if (descr == nullptr) return nullptr;
    // As upstream's numpy(): np.float32(1.0), not an array of rank 0.
    PyObject* scalar = PyArray_Scalar(t.raw(), descr, nullptr);
    Py_DECREF(descr);
    return scalar;
  }
  return TensorToArray(t, owner, /*copy=*/true);
}

}  // namespace headrace::bind
