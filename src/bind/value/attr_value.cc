#include "bind/value/attr_value.h"

#include <string>

#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"

namespace headrace::bind {
namespace {

const char* Expected(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
    case AttrKind::kIntList:
      return "int";
    case AttrKind::kFloat:
    case AttrKind::kFloatList:
      return "float";
    case AttrKind::kBool:
    case AttrKind::kBoolList:
      return "bool";
    case AttrKind::kString:
    case AttrKind::kStringList:
      return "string";
    case AttrKind::kType:
    case AttrKind::kTypeList:
      return "DataType";
    case AttrKind::kShape:
    case AttrKind::kShapeList:
      return "TensorShape";
    case AttrKind::kTensor:
    case AttrKind::kTensorList:
      return "TensorProto";
    default:
      return "NameAttrList";
  }
}

bool Wrong(const AttrDef& attr, PyObject* o) {
  // A number that is too large keeps Python's own error.
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
    return false;
  }
  if (PyErr_Occurred()) PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "Expected %s for argument '%s' not %R.",
               Expected(attr.kind), attr.name.c_str(), o);
  return false;
}

bool ToInt(PyObject* o, int64_t* out) {
  // int("3") is a number to Python; upstream refuses texts.
  if (PyUnicode_Check(o) || PyBytes_Check(o) || o == Py_None) return false;
  Ref n(PyNumber_Long(o));
  if (!n) return false;
  *out = PyLong_AsLongLong(n.get());
  // PyLong_AsLongLong gives -1 for errors, and for -1.
  return *out != -1 || !PyErr_Occurred();
}

bool ToFloat(PyObject* o, float* out) {
  if (PyUnicode_Check(o) || PyBytes_Check(o)) return false;
  double d = PyFloat_AsDouble(o);
  // Attributes are float32 on the wire.
  *out = static_cast<float>(d);
  return d != -1.0 || !PyErr_Occurred();
}

bool ToBool(PyObject* o, bool* out) {
  // Ints are no truth values here, as upstream has it.
  if (!PyBool_Check(o) &&
      !(IsNumpyScalar(o) && ArrayDType(o) == DType::kBool)) {
    return false;
  }
  *out = PyObject_IsTrue(o) == 1;
  return true;
}

bool ToString(PyObject* o, std::string* out) {
  char* bytes;
  Py_ssize_t size;
  if (PyBytes_Check(o)) {
    if (PyBytes_AsStringAndSize(o, &bytes, &size) < 0) return false;
    out->assign(bytes, size);
    return true;
  }
  if (!PyUnicode_Check(o)) return false;
  const char* text = PyUnicode_AsUTF8AndSize(o, &size);
  if (text == nullptr) return false;
  out->assign(text, size);
  return true;
}

bool ToType(PyObject* o, DType* out) {
  *out = AsDType(o);
  return *out != DType::kInvalid;
}

bool ToTensorAttr(PyObject* o, Tensor* out) {
  Value v;
  if (IsTensor(o)) {
    v = ValueOf(o);
    if (v.is_symbolic()) return false;
    *out = v.tensor();
    return true;
  }
  return ToTensor(o, {}, out);
}

template <typename T, typename F>
bool ToList(const AttrDef& attr, PyObject* o, StringView op, F item,
            AttrValue* out) {
  // A tensor or a text is no list of attributes, though Python could walk along
  // it.
  if (!IsSequence(o) && !PyRange_Check(o) && !IsArray(o)) {
    std::string name(op);
    PyErr_Format(PyExc_TypeError,
                 "Expected list for '%s' argument to '%s' Op, not %R.",
                 attr.name.c_str(), name.c_str(), o);
    return false;
  }
  std::vector<T> list;
  Py_ssize_t n = PySequence_Size(o);
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref e(PySequence_GetItem(o, i));
    T value{};
    // The message shows the element, or the whole where it could not be had.
    if (!e || !item(e.get(), &value)) return Wrong(attr, e ? e.get() : o);
    list.push_back(std::move(value));
  }
  *out = std::move(list);
  return n >= 0;
}

bool ToBoolList(const AttrDef& attr, PyObject* o, StringView op,
                AttrValue* out) {
  struct Bool {
    bool value;
  };
  AttrValue ignored;
  std::vector<bool> list;
  // ToList keeps vectors of T, and a vector of bools has no addresses to fill:
  // the bools go into `list`, the numbers nowhere.
  auto keep = [&](PyObject* e, int64_t*) {
    bool b;
    if (!ToBool(e, &b)) return false;
    list.push_back(b);
    return true;
  };
  if (!ToList<int64_t>(attr, o, op, keep, &ignored)) return false;
  *out = std::move(list);
  return true;
}

template <typename T, typename F>
bool ToOne(const AttrDef& attr, PyObject* o, F convert, AttrValue* out) {
  T value{};
  if (!convert(o, &value)) return Wrong(attr, o);
  *out = std::move(value);
  return true;
}

// A shape's own error says more than "Expected TensorShape".
bool ToShapeAttr(const AttrDef& attr, PyObject* o, AttrValue* out) {
  Shape s;
  if (!AsShape(o, &s)) {
    return PyErr_ExceptionMatches(PyExc_TypeError) ? Wrong(attr, o) : false;
  }
  *out = std::move(s);
  return true;
}

struct ToPython {
  PyObject* operator()(std::monostate) const {
    return Ref::Borrow(Py_None).release();
  }
  PyObject* operator()(int64_t v) const { return PyLong_FromLongLong(v); }
  PyObject* operator()(float v) const { return PyFloat_FromDouble(v); }
  PyObject* operator()(bool v) const { return PyBool_FromLong(v); }
  PyObject* operator()(const std::string& v) const {
    // Strings are bytes to graphs; whether they are text is for the reader.
    return PyBytes_FromStringAndSize(v.data(), v.size());
  }
  PyObject* operator()(DType v) const { return DTypeObject(v); }
  PyObject* operator()(const Shape& v) const { return ShapeObject(v); }
  PyObject* operator()(const Tensor& v) const { return WrapValue(Value(v)); }
  PyObject* operator()(const FuncRef& v) const {
    return PyUnicode_FromStringAndSize(v.name.data(), v.name.size());
  }
  PyObject* operator()(const AttrPlaceholder& v) const {
    return PyUnicode_FromStringAndSize(v.name.data(), v.name.size());
  }
  template <typename T>
  PyObject* operator()(const std::vector<T>& v) const {
    Ref list(PyList_New(0));
    for (size_t i = 0; list && i < v.size(); ++i) {
      // vector<bool> gives a proxy, which is no bool to overloads.
      Ref item((*this)(static_cast<T>(v[i])));
      if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
    }
    return list.release();
  }
};

}  // namespace

bool ToFuncRef(PyObject* o, FuncRef* out) {
  Ref held = Ref::Borrow(o);
  if (!PyUnicode_Check(o) && !PyBytes_Check(o)) {
    // Concrete functions first: `name` of a traced one is the user's, not the
    // library's.
    held = Ref(PyObject_GetAttrString(o, "_function_name"));
    if (!held) {
      PyErr_Clear();
      held = Ref(PyObject_GetAttrString(o, "name"));
    }
    if (!held) return PyErr_Clear(), false;
  }
  return ToString(held.get(), &out->name);
}

bool ToAttr(const AttrDef& attr, PyObject* o, StringView op, AttrValue* out) {
  switch (attr.kind) {
    case AttrKind::kInt:
      return ToOne<int64_t>(attr, o, ToInt, out);
    case AttrKind::kFloat:
      return ToOne<float>(attr, o, ToFloat, out);
    case AttrKind::kBool:
      return ToOne<bool>(attr, o, ToBool, out);
    case AttrKind::kString:
      return ToOne<std::string>(attr, o, ToString, out);
    case AttrKind::kType:
      return ToOne<DType>(attr, o, ToType, out);
    case AttrKind::kShape:
      return ToShapeAttr(attr, o, out);
    case AttrKind::kTensor:
      return ToOne<Tensor>(attr, o, ToTensorAttr, out);
    case AttrKind::kFunc:
      return ToOne<FuncRef>(attr, o, ToFuncRef, out);
    case AttrKind::kIntList:
      return ToList<int64_t>(attr, o, op, ToInt, out);
    case AttrKind::kFloatList:
      return ToList<float>(attr, o, op, ToFloat, out);
    case AttrKind::kBoolList:
      return ToBoolList(attr, o, op, out);
    case AttrKind::kStringList:
      return ToList<std::string>(attr, o, op, ToString, out);
    case AttrKind::kTypeList:
      return ToList<DType>(attr, o, op, ToType, out);
    case AttrKind::kShapeList:
      return ToList<Shape>(attr, o, op, AsShape, out);
    case AttrKind::kTensorList:
      return ToList<Tensor>(attr, o, op, ToTensorAttr, out);
    case AttrKind::kFuncList:
      return ToList<FuncRef>(attr, o, op, ToFuncRef, out);
    default:
      PyErr_Format(PyExc_TypeError, "attr '%s' cannot be given from Python",
                   attr.name.c_str());
      return false;
  }
}

PyObject* FromAttr(const AttrValue& value) {
  return std::visit(ToPython{}, static_cast<const AttrValue::variant&>(value));
}

}  // namespace headrace::bind
