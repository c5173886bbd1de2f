#include "bind/call/tensor_functions.h"

#include <string>

#include "base/thread_pool.h"
#include "bind/call/op_call.h"
#include "bind/call/operators.h"
#include "bind/python/status.h"
#include "bind/value/attr_value.h"
#include "bind/value/convert.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "bind/value/variable_object.h"
#include "op/emitter.h"
#include "op/registry.h"
#include "ops/random/generator.h"

namespace headrace::bind {
namespace {

bool OptionalDType(PyObject* o, DType* d) {
  *d = DType::kInvalid;
  if (o == Py_None) return true;
  *d = AsDType(o);
  if (*d != DType::kInvalid) return true;
  // An object whose own attribute raised keeps its error.
  if (!PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError,
                 "Cannot convert the argument `type_value`: %R to a TensorFlow "
                 "DType.",
                 o);
  }
  return false;
}

// make_tensor(value, dtype, hint): Python data as a new eager tensor.
PyObject* MakeTensor(PyObject*, PyObject* args) {
  PyObject *o, *dtype = Py_None, *hint = Py_None;
  WantedType wanted;
  if (!PyArg_ParseTuple(args, "O|OO", &o, &dtype, &hint) ||
      !OptionalDType(dtype, &wanted.required) ||
      !OptionalDType(hint, &wanted.hint)) {
    return nullptr;
  }
  Tensor t;
  return ToTensor(o, wanted, &t) ? WrapValue(Value(std::move(t))) : nullptr;
}

// view_array(array): an array's memory as an eager tensor.
PyObject* ViewArray(PyObject*, PyObject* o) {
  Tensor t;
  return ViewOfArray(o, &t) ? WrapValue(Value(std::move(t))) : nullptr;
}

// to_tensor(value, dtype, hint): what the op functions make of a value.
PyObject* ConvertToTensor(PyObject*, PyObject* args) {
  PyObject *o, *dtype = Py_None, *hint = Py_None;
  WantedType wanted;
  if (!PyArg_ParseTuple(args, "O|OO", &o, &dtype, &hint) ||
      !OptionalDType(dtype, &wanted.required) ||
      !OptionalDType(hint, &wanted.hint)) {
    return nullptr;
  }
  if (IsTensor(o)) return Ref::Borrow(o).release();
  Value v;
  return ToValue(o, wanted, &v) ? WrapValue(std::move(v)) : nullptr;
}

// fits(x, dtype, place, size): whether x is a tensor of that dtype whose size
// at `place`, counted from the end (-1), is known to be `size`.
PyObject* Fits(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || !PyLong_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "fits: four arguments are wanted");
    return nullptr;
  }
  if (!IsTensor(args[0]) || !IsDTypeObject(args[1]) || !PyLong_Check(args[3])) {
    Py_RETURN_FALSE;
  }
  const long place = PyLong_AsLong(args[2]);
  const long long size = PyLong_AsLongLong(args[3]);
  if (PyErr_Occurred()) return nullptr;
  const Value& v = ValueOf(args[0]);
  const bool fits = v && v.dtype() == DTypeOfObject(args[1]) && place < 0 &&
                    -place <= v.rank() && size >= 0 &&
                    v.shape()[v.rank() + static_cast<int>(place)] == size;
  return PyBool_FromLong(fits);
}

// Whether objects of exactly this type have no parts.
bool IsLeafType(const PyTypeObject* t) {
  return t == eager_type || t == symbolic_type || t == &PyLong_Type ||
         t == &PyFloat_Type || t == &PyBool_Type || t == &PyUnicode_Type ||
         t == &PyBytes_Type || t == &PyComplex_Type || t == Py_TYPE(Py_None);
}

enum class Flattened { kWhole, kUnknown, kFailed };

Flattened FlattenInto(PyObject* o, PyObject* leaves);

Flattened FlattenItems(PyObject* tuple, PyObject* leaves) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    const Flattened found = FlattenInto(PyTuple_GetItem(tuple, i), leaves);
    if (found != Flattened::kWhole) return found;
  }
  return Flattened::kWhole;
}

// The values of a dict by its sorted keys; unknown where these have no order.
Flattened FlattenDict(PyObject* dict, PyObject* leaves) {
  Ref keys(PyDict_Keys(dict));
  if (!keys) return Flattened::kFailed;
  if (PyList_Sort(keys.get()) != 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return Flattened::kFailed;
    PyErr_Clear();
    return Flattened::kUnknown;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(keys.get()); ++i) {
    Ref value = Ref::Borrow(
        PyDict_GetItemWithError(dict, PyList_GetItem(keys.get(), i)));
    if (!value) {
      return PyErr_Occurred() ? Flattened::kFailed : Flattened::kUnknown;
    }
    const Flattened found = FlattenInto(value.get(), leaves);
    if (found != Flattened::kWhole) return found;
  }
  return Flattened::kWhole;
}

Flattened FlattenInto(PyObject* o, PyObject* leaves) {
  PyTypeObject* t = Py_TYPE(o);
  if (IsLeafType(t)) {
    return PyList_Append(leaves, o) == 0 ? Flattened::kWhole
                                         : Flattened::kFailed;
  }
  if (t != &PyList_Type && t != &PyTuple_Type && t != &PyDict_Type) {
    return Flattened::kUnknown;
  }
  if (Py_EnterRecursiveCall(" while a structure is flattened") != 0) {
    return Flattened::kFailed;
  }
  Flattened found = Flattened::kUnknown;
  if (t == &PyDict_Type) {
    found = FlattenDict(o, leaves);
  } else {
    // A tuple of its own: comparisons of keys run code, which may change lists.
    Ref held(PySequence_Tuple(o));
    found = held ? FlattenItems(held.get(), leaves) : Flattened::kFailed;
  }
  Py_LeaveRecursiveCall();
  return found;
}

// flatten(structure): see nest.flatten, which does what is unknown here.
PyObject* Flatten(PyObject*, PyObject* o) {
  Ref leaves(PyList_New(0));
  if (!leaves) return nullptr;
  switch (FlattenInto(o, leaves.get())) {
    case Flattened::kWhole:
      return leaves.release();
    case Flattened::kUnknown:
      Py_RETURN_NONE;
    case Flattened::kFailed:
      break;
  }
  return nullptr;
}

PyObject* NeedsInt64In(PyObject*, PyObject* o) {
  return PyBool_FromLong(NeedsInt64(o));
}

PyObject* HoldsTensorsIn(PyObject*, PyObject* o) {
  bool holds = false;
  if (IsSequence(o) && !HoldsTensors(o, &holds)) return nullptr;
  return PyBool_FromLong(holds);
}

// constant(tensor, name): an eager tensor as a constant of this emitter.
PyObject* Constant(PyObject*, PyObject* args) {
  PyObject* o;
  const char* name = nullptr;  // the op's
  if (!PyArg_ParseTuple(args, "O|z", &o, &name)) return nullptr;
  if (!IsTensor(o) || ValueOf(o).is_symbolic()) {
    PyErr_SetString(PyExc_TypeError, "constant wants an eager tensor");
    return nullptr;
  }
  NoteContextUsed();
  Emitter* emitter = CurrentEmitter();
  if (emitter->is_eager()) return Ref::Borrow(o).release();
  // Set only for what is emitted next, which is this constant.
  if (name) emitter->SetNextName(name);
  Value v;
  if (!ConstantValue(ValueOf(o).tensor(), "", &v)) return nullptr;
  return WrapValue(std::move(v));
}

// describe_objects(tensor): variants and resources as text, in brackets by
// dimension.
std::string Describe(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kVariant) {
    const Variant& v = t.data<Variant>()[i];
    // A variant that was never set has nothing that could say its type.
    if (v.empty()) return "<unprintable>";
    std::string name(v.value()->type_name());
    // Type names are printed without upstream's namespaces.
    size_t colon = name.rfind(':');
    return "<" + (colon == std::string::npos ? name : name.substr(colon + 1)) +
           ">";
  }
  const ResourceHandle& h = t.data<ResourceHandle>()[i];
  return "<ResourceHandle(name=\"" + h.name + "\", device=\"" + h.device +
         "\", container=\"" + h.container + "\")>";
}

PyObject* DescribeObjects(PyObject*, PyObject* o) {
  if (!IsTensor(o) || ValueOf(o).is_symbolic() || IsPlain(ValueOf(o).dtype()) ||
      ValueOf(o).dtype() == DType::kString) {
    PyErr_SetString(PyExc_TypeError, "describe_objects wants eager objects");
    return nullptr;
  }
  const Tensor& t = ValueOf(o).tensor();
  std::string text;
  // A text for people; a list of more objects helps nobody.
  for (int64_t i = 0; i < t.num_elements() && i < 64; ++i) {
    text += (i ? " " : "") + Describe(t, i);
  }
  if (t.rank() > 0) text = "[" + text + "]";
  return PyUnicode_DecodeUTF8(text.data(), text.size(), "replace");
}

PyObject* IsEager(PyObject*, PyObject*) {
  return PyBool_FromLong(CurrentEmitter()->is_eager());
}

PyObject* HasTensorEquality(PyObject*, PyObject*) {
  return PyBool_FromLong(TensorEquality());
}

PyObject* SwitchTensorEquality(PyObject*, PyObject* on) {
  const int is_on = PyObject_IsTrue(on);
  if (is_on < 0) return nullptr;
  SetTensorEquality(is_on != 0);
  Py_RETURN_NONE;
}

PyObject* ChooseProcessor(PyObject*, PyObject* index) {
  const long n = PyLong_AsLong(index);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  SetProcessor(static_cast<int>(n));
  Py_RETURN_NONE;
}

PyObject* NumpyType(PyObject*, PyObject* o) {
  return IsDTypeObject(o) ? NumpyDType(DTypeOfObject(o))
         : Raise(PyExc_TypeError, "%R is no DType", o) ? nullptr
                                                       : nullptr;
}

PyObject* AsDTypeNumber(PyObject*, PyObject* o) {
  return PyLong_FromLong(static_cast<long>(AsDType(o)));
}

// call_op(op, inputs, attrs, name): any op by name, inputs as a flat list of
// anything convertible, attrs a dict. A list of tensors.
PyObject* CallOp(PyObject*, PyObject* args) {
  const char* op;
  PyObject *inputs, *attrs, *name = Py_None;
  if (!PyArg_ParseTuple(args, "sOO!|O", &op, &inputs, &PyDict_Type, &attrs,
                        &name)) {
    return nullptr;
  }
  StatusOr<const OpDef*> def = LookUpOp(op);
  if (!def.ok()) return RaiseStatus(def.status()), nullptr;
  ValueList values;
  absl::InlinedVector<DType, 8> types;
  Ref items(PySequence_Fast(inputs, "inputs must be a sequence"));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0, n = PySequence_Size(items.get()); i < n; ++i) {
    Ref item(PySequence_GetItem(items.get(), i));
    if (!item || !ToValue(item.get(), {}, &values.emplace_back())) {
      return nullptr;
    }
    types.push_back(values.back().dtype());
  }
  AttrMap map;
  Py_ssize_t known = 0;
  for (const AttrDef& a : (*def)->attrs) {
    PyObject* o = PyDict_GetItemString(attrs, a.name.c_str());
    if (o == nullptr) continue;
    ++known;
    AttrValue value;
    if (!ToAttr(a, o, op, &value)) return nullptr;
    map.Set(a.name, std::move(value));
  }
  if (known != PyDict_Size(attrs)) {
    PyErr_Format(PyExc_TypeError, "%s: its attributes are not those of %R", op,
                 attrs);
    return nullptr;
  }
  StatusOr<ResolvedOpPtr> resolved = ResolveOp(**def, types, map);
  if (!resolved.ok()) {
    return RaiseOpError(resolved.status(), name, op), nullptr;
  }
  ValueList outputs;
  if (!EmitResolved(*resolved, values, &outputs, name)) return nullptr;
  Ref list(PyList_New(0));
  for (Value& v : outputs) {
    Ref t(WrapValue(std::move(v)));
    if (!t || PyList_Append(list.get(), t.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* SetConverterHook(PyObject*, PyObject* f) {
  SetConverter(f);
  Py_RETURN_NONE;
}
PyObject* SetShapeClassHook(PyObject*, PyObject* cls) {
  SetShapeClass(cls);
  Py_RETURN_NONE;
}
PyObject* ForgetOps(PyObject*, PyObject*) {
  ForgetResolvedOps();
  Py_RETURN_NONE;
}

PyObject* RequireSeedsOfOps(PyObject*, PyObject* required) {
  RequireSeeds(required == Py_True);
  // Ops that were resolved before were not checked: they are resolved again.
  ForgetResolvedOps();
  Py_RETURN_NONE;
}

PyObject* IsContextUsed(PyObject*, PyObject*) {
  return PyBool_FromLong(ContextUsed());
}

PyObject* IntraOpThreads(PyObject*, PyObject*) {
  int n = NumThreads();
  // 0 is how upstream says that nobody chose a number.
  return PyLong_FromLong(n == DefaultNumThreads() ? 0 : n);
}

PyObject* SetIntraOpThreads(PyObject*, PyObject* o) {
  long n = PyLong_AsLong(o);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  // Threads each have a stack: a number far beyond any machine's is a mistake,
  // to be told before it takes the memory.
  if (n < 0 || n > 4096) {
    PyErr_SetString(PyExc_ValueError,
                    "the number of threads must be 0 to 4096");
    return nullptr;
  }
  SetNumThreads(n == 0 ? DefaultNumThreads() : static_cast<int>(n));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"context_used", Shield<IsContextUsed>, METH_NOARGS,
     "True once an op has run: the engine's settings are then fixed."},
    {"intra_op_threads", Shield<IntraOpThreads>, METH_NOARGS,
     "The threads of one op; 0: as many as there are."},
    {"set_intra_op_threads", Shield<SetIntraOpThreads>, METH_O,
     "Sets the threads of one op; 0: as many as there are."},
    {"make_tensor", Shield<MakeTensor>, METH_VARARGS,
     "make_tensor(value, dtype=None, hint=None): data as an eager tensor."},
    {"view_array", Shield<ViewArray>, METH_O,
     "The memory of an array as a tensor that sees what is written there."},
    {"to_tensor", Shield<ConvertToTensor>, METH_VARARGS,
     "to_tensor(value, dtype=None, hint=None): a tensor of any value."},
    {"constant", Shield<Constant>, METH_VARARGS,
     "constant(tensor, name): the tensor in the current graph, if any."},
    {"fits",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Shield<Fits>)),
     METH_FASTCALL,
     "fits(x, dtype, place, size): whether x is a tensor of that dtype whose "
     "size at a place counted from the end is known to be `size`."},
    {"flatten", Shield<Flatten>, METH_O,
     "flatten(structure): the leaves of lists, tuples and dicts whose leaves "
     "are tensors and plain values; None for other structures."},
    {"needs_int64", Shield<NeedsInt64In>, METH_O,
     "Whether an integer, also in lists and arrays, does not fit int32."},
    {"holds_tensors", Shield<HoldsTensorsIn>, METH_O,
     "True when a nested sequence has leaves that are not plain data."},
    {"describe_objects", Shield<DescribeObjects>, METH_O,
     "A variant or resource tensor's elements as text."},
    {"is_eager", Shield<IsEager>, METH_NOARGS, "True when ops run at once."},
    {"tensor_equality", Shield<HasTensorEquality>, METH_NOARGS,
     "True when == of tensors compares elements."},
    {"set_tensor_equality", Shield<SwitchTensorEquality>, METH_O,
     "Whether == of tensors compares elements, else identity."},
    {"set_processor", Shield<ChooseProcessor>, METH_O,
     "The logical processor that new eager tensors name, on this thread."},
    {"set_read_dtype", Shield<SetReadDType>, METH_O,
     "The dtype, or None, that this thread reads variables that are _is_cast "
     "in; returns the one before."},
    {"numpy_dtype", Shield<NumpyType>, METH_O, "The NumPy dtype of a DType."},
    {"dtype_number", Shield<AsDTypeNumber>, METH_O,
     "The enum number of whatever names a type; 0 when nothing does."},
    {"call_op", Shield<CallOp>, METH_VARARGS,
     "call_op(op, inputs, attrs, name=None): any op, a list of tensors."},
    {"set_converter", Shield<SetConverterHook>, METH_O,
     "Sets what converts objects that C++ does not know."},
    {"set_shape_class", Shield<SetShapeClassHook>, METH_O,
     "Sets tf.TensorShape."},
    {"forget_ops", Shield<ForgetOps>, METH_NOARGS,
     "Lets stateful kernels start afresh."},
    {"require_seeds", Shield<RequireSeedsOfOps>, METH_O,
     "Sets whether random operations without a seed are refused."},
    {}};

}  // namespace

bool AddTensorFunctions(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace headrace::bind
