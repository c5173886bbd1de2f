#include "bind/value/variable_object.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "bind/python/status.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/emit_op.h"
#include "bind/value/tensor_object.h"
#include "graph/builder.h"
#include "op/emitter.h"
#include "op/resource.h"

namespace headrace::bind {
namespace {

struct VariableObject {
  PyObject_HEAD Value handle;
  DType dtype;
  Shape shape;
  bool trainable;
  bool is_guest;  // C++ made the variable: this object's end is not its end
  bool is_cast;   // read in the dtype that set_read_dtype() says
  std::shared_ptr<void> life;  // null until somebody asks
  PyObject* dict;
  PyObject* weak_references;
};

PyTypeObject* variable_type = nullptr;
// What layers compute in that keep their weights in another dtype.
thread_local DType read_dtype = DType::kInvalid;

VariableObject* CastTo(PyObject* o) {
  return reinterpret_cast<VariableObject*>(o);
}

// The dtype that a read gives now.
DType DTypeOfRead(PyObject* self) {
  const bool casts = CastTo(self)->is_cast && read_dtype != DType::kInvalid;
  return casts ? read_dtype : CastTo(self)->dtype;
}

// *out, the value read, in the dtype that layers want.
bool CastRead(Value* out) {
  OpScope s;
  *out = s("Cast", {*out}, {{"DstT", read_dtype}});
  if (s.ok()) return true;
  RaiseStatus(s.status(), /*in_graph=*/!CurrentEmitter()->is_eager());
  return false;
}

PyObject* NewVariable(PyTypeObject* type, PyObject*, PyObject*) {
  auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = alloc(type, 0);
  if (self == nullptr) return nullptr;
  // The allocator gives zeros and runs no constructors.
  new (&CastTo(self)->handle) Value;
  new (&CastTo(self)->shape) Shape;
  new (&CastTo(self)->life) std::shared_ptr<void>;
  CastTo(self)->dtype = DType::kInvalid;
  return self;
}

int TraverseVariable(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(CastTo(self)->dict);
  return 0;
}
int ClearVariable(PyObject* self) {
  Py_CLEAR(CastTo(self)->dict);
  return 0;
}

// Frees the value, whoever still has the handle.
void Empty(const Value& handle) {
  if (!handle || handle.is_symbolic() || !handle.has_value()) return;
  StatusOr<std::shared_ptr<Variable>> v =
      ResourceAs<Variable>(handle.tensor(), &DefaultResources());
  if (v.ok()) (*v)->Assign(Tensor());
}

void DeallocVariable(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  // First: the collector must not see a half-dead object.
  PyObject_GC_UnTrack(self);
  // While the variable is whole, as callbacks run here.
  if (CastTo(self)->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(CastTo(self)->dict);
  if (CastTo(self)->life && !CastTo(self)->is_guest) {
    Empty(CastTo(self)->handle);
  }
  CastTo(self)->life.~shared_ptr();
  CastTo(self)->handle.~Value();
  CastTo(self)->shape.~Shape();
  auto release = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  release(self);
  Py_DECREF(type);
}

// _set_up(handle, dtype, shape, trainable, is_guest=False)
PyObject* SetUpVariable(PyObject* self, PyObject* args) {
  PyObject *handle, *dtype, *shape;
  int trainable, is_guest = 0;
  if (!PyArg_ParseTuple(args, "OOOp|p", &handle, &dtype, &shape, &trainable,
                        &is_guest)) {
    return nullptr;
  }
  if (!IsTensor(handle) || !IsDTypeObject(dtype)) {
    PyErr_SetString(PyExc_TypeError, "_set_up wants (Tensor, DType, shape)");
    return nullptr;
  }
  // Checked before anything is set: an object is set up as a whole or not at
  // all.
  if (!AsShape(shape, &CastTo(self)->shape)) return nullptr;
  CastTo(self)->handle = ValueOf(handle);
  CastTo(self)->dtype = DTypeOfObject(dtype);
  CastTo(self)->trainable = trainable;
  CastTo(self)->is_guest = is_guest;
  Py_RETURN_NONE;
}

bool Ready(PyObject* self) {
  if (CastTo(self)->handle) return true;
  PyErr_SetString(PyExc_RuntimeError, "this variable was never set up");
  return false;
}

// What tells one kind of assignment from another.
struct Assignment {
  OpOfDType op;
  bool replaces;  // the shape of the value is checked here
};
// The three differ in the op alone; adding to a variable checks shapes in the
// kernel.
Assignment assign{{"AssignVariableOp", nullptr}, true};
Assignment assign_add{{"AssignAddVariableOp", nullptr}, false};
Assignment assign_sub{{"AssignSubVariableOp", nullptr}, false};

bool WrongDType(PyObject* self, const Value& v, PyObject* value) {
  std::string want(DTypePythonName(CastTo(self)->dtype));
  std::string have(DTypePythonName(v.dtype()));
  PyErr_Format(PyExc_ValueError,
               "Tensor conversion requested dtype %s for Tensor with dtype "
               "%s: %R",
               want.c_str(), have.c_str(), value);
  return false;
}

bool WrongShape(PyObject* self, const Value& v) {
  Ref own(ShapeObject(CastTo(self)->shape)), other(ShapeObject(v.shape()));
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
  DType dtype = CastTo(self)->dtype;
  Value v;
  // Required: a variable keeps its dtype.
  if (!ToValue(value, {dtype, DType::kInvalid}, &v)) return false;
  // ToValue hands tensors of any dtype on.
  if (v.dtype() != dtype) return WrongDType(self, v, value);
  // Before the op runs, as the error names the variable, which the op does not
  // know.
  if (how.replaces && !CastTo(self)->shape.CompatibleWith(v.shape())) {
    return WrongShape(self, v);
  }
  TouchVariable(self);
  const DType types[] = {DType::kResource, dtype};
  const ResolvedOpPtr* op = how.op.Resolve(dtype, types);
  if (op == nullptr) return false;
  ValueList outputs;
  Value inputs[] = {CastTo(self)->handle, std::move(v)};
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
  // Past __init__, which would make another variable.
  PyObject* o =
      NewVariable(reinterpret_cast<PyTypeObject*>(cls), nullptr, nullptr);
  if (o == nullptr) return nullptr;
  CastTo(o)->handle = CastTo(self)->handle;
  CastTo(o)->dtype = CastTo(self)->dtype;
  CastTo(o)->shape = CastTo(self)->shape;
  CastTo(o)->trainable = CastTo(self)->trainable;
  CastTo(o)->is_cast = CastTo(self)->is_cast;
  // Past any __setattr__ of the class.
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
  return Ready(self) ? WrapValue(CastTo(self)->handle) : nullptr;
}
PyObject* GetDType(PyObject* self, void*) {
  return Ready(self) ? DTypeObject(DTypeOfRead(self)) : nullptr;
}
PyObject* GetStoredDType(PyObject* self, void*) {
  return Ready(self) ? DTypeObject(CastTo(self)->dtype) : nullptr;
}
PyObject* GetVariableShape(PyObject* self, void*) {
  return Ready(self) ? ShapeObject(CastTo(self)->shape) : nullptr;
}

PyObject* GetTrainable(PyObject* self, void*) {
  return PyBool_FromLong(CastTo(self)->trainable);
}

PyObject* GetIsCast(PyObject* self, void*) {
  return PyBool_FromLong(CastTo(self)->is_cast);
}
int SetIsCast(PyObject* self, PyObject* value, void*) {
  const int is_cast = value == nullptr ? 0 : PyObject_IsTrue(value);
  if (is_cast < 0) return -1;
  CastTo(self)->is_cast = is_cast != 0;
  return 0;
}

PyObject* IsSetUp(PyObject* self, void*) {
  return PyBool_FromLong(static_cast<bool>(CastTo(self)->handle));
}

PyGetSetDef variable_getset[] = {
    {"_is_set_up", Shield<IsSetUp>, nullptr, "Whether it has a handle.",
     nullptr},
    {"handle", Shield<GetHandle>, nullptr, "The resource tensor.", nullptr},
    {"dtype", Shield<GetDType>, nullptr, "The DType of the value.", nullptr},
    {"_stored_dtype", Shield<GetStoredDType>, nullptr,
     "The DType of the value that is kept, whatever reads are cast to.",
     nullptr},
    {"_is_cast", Shield<GetIsCast>, Shield<SetIsCast>,
     "Whether reads are cast to the dtype of set_read_dtype().", nullptr},
    {"shape", Shield<GetVariableShape>, nullptr, "The declared TensorShape.",
     nullptr},
    {"trainable", Shield<GetTrainable>, nullptr, "Whether tapes watch it.",
     nullptr},
    {}};
PyMethodDef variable_methods[] = {
    {"_set_up", Shield<SetUpVariable>, METH_VARARGS,
     "Gives it a handle, dtype and shape."},
    {"_read", Shield<Read>, METH_NOARGS, "The value now."},
    {"_touch", Shield<Touch>, METH_NOARGS, "Tells tapes that it is used."},
    {"_alias", Shield<Alias>, METH_O, "The same variable as another class."},
    {"_assign", Shield<Assign<assign>>, METH_O, "Replaces the value."},
    {"_assign_add", Shield<Assign<assign_add>>, METH_O, "Adds to the value."},
    {"_assign_sub", Shield<Assign<assign_sub>>, METH_O,
     "Subtracts from the value."},
    {}};
PyMemberDef variable_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(VariableObject, dict), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET,
     offsetof(VariableObject, weak_references), READONLY, nullptr},
    {}};
PyType_Slot variable_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(Shield<NewVariable>)},
    {Py_tp_dealloc, reinterpret_cast<void*>(DeallocVariable)},
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseVariable)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearVariable)},
    {Py_tp_getset, variable_getset},
    {Py_tp_methods, variable_methods},
    {Py_tp_members, variable_members},
    {0, nullptr}};
PyType_Spec variable_spec = {
    "headrace.VariableBase", sizeof(VariableObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    variable_slots};

}  // namespace

bool AddVariableType(PyObject* module) {
  PyObject* type = PyType_FromSpec(&variable_spec);
  if (type == nullptr) return false;
  variable_type = reinterpret_cast<PyTypeObject*>(type);
  return PyModule_AddObjectRef(module, "VariableBase", type) == 0;
}

void TouchVariable(PyObject* self) {
  // Most reads happen without a tape; the flag is one load.
  if (HasRecorders() && CastTo(self)->trainable) {
    TellVariableAccessed(CastTo(self)->handle);
  }
}

bool IsVariable(PyObject* o) {
  // An object that is being set up is no variable yet: conversions would read
  // nothing.
  return PyObject_TypeCheck(o, variable_type) && CastTo(o)->handle;
}
std::weak_ptr<void> LifeOf(PyObject* variable) {
  std::shared_ptr<void>& life = CastTo(variable)->life;
  if (CastTo(variable)->is_guest && !CastTo(variable)->handle.is_symbolic()) {
    StatusOr<std::shared_ptr<Variable>> resource = ResourceAs<Variable>(
        CastTo(variable)->handle.tensor(), &DefaultResources());
    if (resource.ok()) return *resource;  // who holds the handle holds it
  }
  if (!life) life = std::make_shared<char>();
  return life;
}

const Value& HandleOf(PyObject* variable) { return CastTo(variable)->handle; }
VariableTraits TraitsOf(PyObject* variable) {
  VariableObject* v = CastTo(variable);
  return {v->dtype, &v->shape, v->trainable};
}

bool ReadVariable(PyObject* variable, Value* out) {
  if (!Ready(variable)) return false;
  TouchVariable(variable);
  // Under the GIL, and resolved once a dtype: a read is the commonest op of a
  // training step.
  static OpOfDType read{"ReadVariableOp", "dtype"};
  const DType types[] = {DType::kResource};
  const ResolvedOpPtr* op = read.Resolve(CastTo(variable)->dtype, types);
  if (op == nullptr) return false;
  ValueList outputs;
  Value inputs[] = {CastTo(variable)->handle};
  // In a session's graph it is read where the variable lies, which may be on
  // another device than what reads it.
  GraphBuilder* builder = inputs[0].is_symbolic()
                              ? dynamic_cast<GraphBuilder*>(CurrentEmitter())
                              : nullptr;
  const PlacedAnywhere placed(builder && !builder->is_function() ? builder
                                                                 : nullptr);
  // Its name follows the scope, as upstream's does.
  if (!EmitResolved(*op, inputs, &outputs, Py_None)) return false;
  *out = std::move(outputs[0]);
  return DTypeOfRead(variable) == out->dtype() || CastRead(out);
}

PyObject* SetReadDType(PyObject*, PyObject* dtype) {
  const DType before = read_dtype;
  if (dtype != Py_None && !IsDTypeObject(dtype)) {
    PyErr_SetString(PyExc_TypeError, "set_read_dtype wants a DType or None");
    return nullptr;
  }
  read_dtype = dtype == Py_None ? DType::kInvalid : DTypeOfObject(dtype);
  if (before == DType::kInvalid) Py_RETURN_NONE;
  return DTypeObject(before);
}

}  // namespace headrace::bind
