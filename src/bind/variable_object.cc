#include "bind/variable_object.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "bind/convert.h"
#include "bind/dtype_object.h"
#include "bind/op_call.h"
#include "bind/status.h"
#include "bind/tensor_object.h"
#include "op/emitter.h"

namespace headrace::bind {
namespace {

struct VariableObject {
  PyObject_HEAD Value handle;
  DType dtype;
  Shape shape;
  bool trainable;
  PyObject* dict;
  PyObject* weak_references;
};

PyTypeObject* variable_type = nullptr;

VariableObject* Cast(PyObject* o) {
  return reinterpret_cast<VariableObject*>(o);
}

PyObject* New(PyTypeObject* type, PyObject*, PyObject*) {
  auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = alloc(type, 0);
  if (self == nullptr) return nullptr;
  new (&Cast(self)->handle) Value;
  new (&Cast(self)->shape) Shape;
  Cast(self)->dtype = DType::kInvalid;
  return self;
}

int Traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(Cast(self)->dict);
  return 0;
}
int Clear(PyObject* self) {
  Py_CLEAR(Cast(self)->dict);
  return 0;
}

void Dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (Cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(Cast(self)->dict);
  Cast(self)->handle.~Value();
  Cast(self)->shape.~Shape();
  auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

// _set_up(handle, dtype, shape, trainable)
PyObject* SetUp(PyObject* self, PyObject* args) {
  PyObject *handle, *dtype, *shape;
  int trainable;
  if (!PyArg_ParseTuple(args, "OOOp", &handle, &dtype, &shape, &trainable)) {
    return nullptr;
  }
  if (!IsTensor(handle) || !IsDTypeObject(dtype)) {
    PyErr_SetString(PyExc_TypeError, "_set_up wants (Tensor, DType, shape)");
    return nullptr;
  }
  if (!AsShape(shape, &Cast(self)->shape)) return nullptr;
  Cast(self)->handle = ValueOf(handle);
  Cast(self)->dtype = DTypeOfObject(dtype);
  Cast(self)->trainable = trainable;
  Py_RETURN_NONE;
}

bool Ready(PyObject* self) {
  if (Cast(self)->handle) return true;
  PyErr_SetString(PyExc_RuntimeError, "this variable was never set up");
  return false;
}

// What tells one kind of assignment from another.
struct Assignment {
  OpOfDType op;
  bool replaces;  // the shape of the value is checked here
};
Assignment assign{{"AssignVariableOp", nullptr}, true};
Assignment assign_add{{"AssignAddVariableOp", nullptr}, false};
Assignment assign_sub{{"AssignSubVariableOp", nullptr}, false};

bool WrongDType(PyObject* self, const Value& v, PyObject* value) {
  std::string want(DTypePythonName(Cast(self)->dtype));
  std::string have(DTypePythonName(v.dtype()));
  PyErr_Format(PyExc_ValueError,
               "Tensor conversion requested dtype %s for Tensor with dtype "
               "%s: %R",
               want.c_str(), have.c_str(), value);
  return false;
}

bool WrongShape(PyObject* self, const Value& v) {
  Ref own(ShapeObject(Cast(self)->shape)), other(ShapeObject(v.shape()));
  Ref name(PyObject_GetAttrString(self, "name"));
  if (own && other && name) {
    PyErr_Format(PyExc_ValueError,
                 "Cannot assign value to variable ' %S': Shape mismatch.The "
                 "variable shape %S, and the assigned value shape %S are "
                 "incompatible.",
                 name.get(), own.get(), other.get());
  }
  return false;
}

bool AssignBy(PyObject* self, Assignment& how, PyObject* value) {
  if (!Ready(self)) return false;
  DType dtype = Cast(self)->dtype;
  Value v;
  if (!ToValue(value, {dtype, DType::kInvalid}, &v)) return false;
  if (v.dtype() != dtype) return WrongDType(self, v, value);
  if (how.replaces && !Cast(self)->shape.CompatibleWith(v.shape())) {
    return WrongShape(self, v);
  }
  TouchVariable(self);
  const DType types[] = {DType::kResource, dtype};
  const ResolvedOpPtr* op = how.op.Resolve(dtype, types);
  if (op == nullptr) return false;
  ValueList outputs;
  Value inputs[] = {Cast(self)->handle, std::move(v)};
  return EmitResolved(*op, inputs, &outputs, Py_None);
}

template <Assignment& kHow>
PyObject* Assign(PyObject* self, PyObject* value) {
  if (!AssignBy(self, kHow, value)) return nullptr;
  Py_RETURN_NONE;
}

// _alias(cls): an object of class `cls` for the same variable, which keeps
// this one as its `_parent`.
PyObject* Alias(PyObject* self, PyObject* cls) {
  static PyObject* parent = PyUnicode_InternFromString("_parent");
  if (!Ready(self) || !PyType_Check(cls)) return nullptr;
  PyObject* o = New(reinterpret_cast<PyTypeObject*>(cls), nullptr, nullptr);
  if (o == nullptr) return nullptr;
  Cast(o)->handle = Cast(self)->handle;
  Cast(o)->dtype = Cast(self)->dtype;
  Cast(o)->shape = Cast(self)->shape;
  Cast(o)->trainable = Cast(self)->trainable;
  if (PyObject_GenericSetAttr(o, parent, self) < 0) Py_CLEAR(o);
  return o;
}

PyObject* Read(PyObject* self, PyObject*) {
  Value v;
  return ReadVariable(self, &v) ? WrapValue(std::move(v)) : nullptr;
}

PyObject* Touch(PyObject* self, PyObject*) {
  TouchVariable(self);
  Py_RETURN_NONE;
}

PyObject* GetHandle(PyObject* self, void*) {
  return Ready(self) ? WrapValue(Cast(self)->handle) : nullptr;
}
PyObject* GetDType(PyObject* self, void*) {
  return Ready(self) ? DTypeObject(Cast(self)->dtype) : nullptr;
}
PyObject* GetShape(PyObject* self, void*) {
  return Ready(self) ? ShapeObject(Cast(self)->shape) : nullptr;
}

PyObject* GetTrainable(PyObject* self, void*) {
  return PyBool_FromLong(Cast(self)->trainable);
}

PyGetSetDef getset[] = {
    {"handle", GetHandle, nullptr, "The resource tensor.", nullptr},
    {"dtype", GetDType, nullptr, "The DType of the value.", nullptr},
    {"shape", GetShape, nullptr, "The declared TensorShape.", nullptr},
    {"trainable", GetTrainable, nullptr, "Whether tapes watch it.", nullptr},
    {}};
PyMethodDef methods[] = {
    {"_set_up", SetUp, METH_VARARGS, "Gives it a handle, dtype and shape."},
    {"_read", Read, METH_NOARGS, "The value now."},
    {"_touch", Touch, METH_NOARGS, "Tells tapes that it is used."},
    {"_alias", Alias, METH_O, "The same variable as another class."},
    {"_assign", Assign<assign>, METH_O, "Replaces the value."},
    {"_assign_add", Assign<assign_add>, METH_O, "Adds to the value."},
    {"_assign_sub", Assign<assign_sub>, METH_O, "Subtracts from the value."},
    {}};
PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(VariableObject, dict), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET,
     offsetof(VariableObject, weak_references), READONLY, nullptr},
    {}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(New)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(Clear)},
                       {Py_tp_getset, getset},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {
    "headrace.VariableBase", sizeof(VariableObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

bool AddVariableType(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  variable_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "VariableBase", type) == 0;
}

void TouchVariable(PyObject* self) {
  if (HasRecorders() && Cast(self)->trainable) {
    TellVariableAccessed(Cast(self)->handle);
  }
}

bool IsVariable(PyObject* o) { return PyObject_TypeCheck(o, variable_type); }
const Value& HandleOf(PyObject* variable) { return Cast(variable)->handle; }
VariableTraits TraitsOf(PyObject* variable) {
  VariableObject* v = Cast(variable);
  return {v->dtype, &v->shape, v->trainable};
}

bool ReadVariable(PyObject* variable, Value* out) {
  if (!Ready(variable)) return false;
  TouchVariable(variable);
  static OpOfDType read{"ReadVariableOp", "dtype"};
  const DType types[] = {DType::kResource};
  const ResolvedOpPtr* op = read.Resolve(Cast(variable)->dtype, types);
  if (op == nullptr) return false;
  ValueList outputs;
  Value inputs[] = {Cast(variable)->handle};
  if (!EmitResolved(*op, inputs, &outputs, Py_None)) return false;
  *out = std::move(outputs[0]);
  return true;
}

}  // namespace headrace::bind
