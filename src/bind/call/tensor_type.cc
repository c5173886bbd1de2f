#include "bind/call/tensor_type.h"

#include <string.h>
#include <structmember.h>

#include <cstddef>
#include <string>
#include <utility>

#include "bind/call/indexing.h"
#include "bind/call/operators.h"
#include "bind/python/status.h"
#include "bind/value/dtype_object.h"
#include "bind/value/numpy_array.h"
#include "bind/value/tensor_object.h"
#include "graph/builder.h"

namespace headrace::bind {
namespace {

[[gnu::hot]] void DeallocTensor(PyObject* self) {
  auto* o = reinterpret_cast<TensorObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  // Only these were tracked, see SetAttribute; the collector must not see a
  // half-dead object.
  if (o->dict || o->owner) PyObject_GC_UnTrack(self);
  // While the tensor is still whole, as callbacks of weak references run here.
  if (o->weak_references) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  Py_CLEAR(o->owner);
  // PyObject_GC_New runs no constructors, so that Value was placed by hand, and
  // is destroyed so.
  o->value.~Value();
  PyObject_GC_Del(self);
  // A heap type is counted by its objects.
  Py_DECREF(type);
}

int TraverseTensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<TensorObject*>(self)->dict);
  Py_VISIT(reinterpret_cast<TensorObject*>(self)->owner);
  return 0;
}

int ClearTensor(PyObject* self) {
  Py_CLEAR(reinterpret_cast<TensorObject*>(self)->dict);
  Py_CLEAR(reinterpret_cast<TensorObject*>(self)->owner);
  return 0;
}

// Only tensors that carry attributes or hold their graph can be part of a
// cycle, so only those are known to the garbage collector.
int SetAttribute(PyObject* self, PyObject* name, PyObject* value) {
  auto* o = reinterpret_cast<TensorObject*>(self);
  bool had = o->dict != nullptr || o->owner != nullptr;
  int result = PyObject_GenericSetAttr(self, name, value);
  // Tracked with its first attribute, never earlier: a collection that walks
  // each small tensor would cost more than the tensors' work.
  if (!had && o->dict) PyObject_GC_Track(self);
  return result;
}

bool IsNumpyName(PyObject* name) {
  // Names that NumPy's arrays have and upstream's tensors do not: users who try
  // them are told of NumPy's behaviour, in upstream's words.
  for (const char* n : {"T", "astype", "ravel", "transpose", "reshape", "clip",
                        "size", "tolist", "data"}) {
    if (PyUnicode_CompareWithASCIIString(name, n) == 0) return true;
  }
  return false;
}

// Asked while an error is set, which stays.
bool TypeHas(PyTypeObject* type, PyObject* name) {
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  const bool has = PyObject_HasAttr(reinterpret_cast<PyObject*>(type), name);
  PyErr_Restore(kind, value, trace);
  return has;
}

PyObject* GetAttribute(PyObject* self, PyObject* name) {
  // The usual case costs no comparison of names.
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  if (IsNumpyName(name)) {
    Ref type(PyType_GetName(Py_TYPE(self)));
    PyErr_Format(PyExc_AttributeError,
                 "%U object has no attribute '%U'. \n"
                 "        If you are looking for numpy-related methods, please "
                 "run the following:\n"
                 "        tf.experimental.numpy.experimental_enable_numpy_"
                 "behavior()\n      ",
                 type.get(), name);
  } else if ((Py_TYPE(self) == symbolic_type || Py_TYPE(self) == eager_type) &&
             !TypeHas(Py_TYPE(self), name)) {
    // Subclasses keep Python's own message, and so does a property that raised
    // by itself.
    Ref type(PyType_GetName(Py_TYPE(self)));  // without the module
    PyErr_Format(PyExc_AttributeError, "'%U' object has no attribute '%U'",
                 type.get(), name);
  }
  return nullptr;
}

bool NeedsValue(PyObject* self) {
  const Value& v = ValueOf(self);
  // Tensors without elements have no memory either.
  if (v && !v.is_symbolic() && v.tensor().raw() != nullptr) return true;
  if (v && !v.is_symbolic() && v.tensor().num_elements() == 0) return true;
  PyErr_SetString(PyExc_TypeError,
                  "A symbolic tf.Tensor has no value outside its graph's run.");
  return false;
}

PyObject* Dtype(PyObject* self, void*) {
  const Value& v = ValueOf(self);
  if (v) return DTypeObject(v.dtype());
  PyErr_SetString(PyExc_AttributeError, "'Tensor' object has no dtype");
  return nullptr;
}

PyObject* GetShape(PyObject* self, void*) {
  const Value& v = ValueOf(self);
  if (v) return ShapeObject(v.shape());
  PyErr_SetString(PyExc_AttributeError, "'Tensor' object has no shape");
  return nullptr;
}

PyObject* Rank(PyObject* self, PyObject*) {
  const Value& v = ValueOf(self);
  if (!v || v.rank() < 0) Py_RETURN_NONE;
  return PyLong_FromLong(v.rank());
}

PyObject* Sizes(PyObject* self, PyObject*) {
  const Value& v = ValueOf(self);
  if (!v) Py_RETURN_NONE;
  return SizesOf(v.shape());
}

PyObject* Id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(ValueOf(self).id());
}

PyObject* Name(PyObject* self, void*) {
  const Value& v = ValueOf(self);
  if (v && v.is_symbolic()) {
    return PyUnicode_FromFormat("%s:%d", v.node()->name().c_str(), v.index());
  }
  // An AttributeError, so that hasattr() and getattr() with a default take
  // eager tensors for nameless.
  PyErr_SetString(PyExc_AttributeError,
                  "Tensor.name is undefined when eager execution is enabled.");
  return nullptr;
}

PyObject* Numpy(PyObject* self, PyObject*) {
  if (!NeedsValue(self)) return nullptr;
  return TensorToNumpy(ValueOf(self).tensor(), self);
}

// A read-only view (or object array) without a copy; what __array__ gives.
PyObject* View(PyObject* self, PyObject*) {
  if (!NeedsValue(self)) return nullptr;
  const Tensor& t = ValueOf(self).tensor();
  // (Without elements there is no memory to view.)
  return TensorToArray(t, self, t.num_elements() == 0);
}

PyObject* SetShape(PyObject* self, PyObject* arg) {
  Shape s;
  if (!AsShape(arg, &s)) return nullptr;
  const Value& v = ValueOf(self);
  if (!v || !v.is_symbolic()) {
    PyErr_SetString(PyExc_TypeError, "an eager tensor keeps its shape");
    return nullptr;
  }
  StatusOr<Shape> both = MergeShapes(v.shape(), s);
  if (!both.ok()) {
    RaiseStatus(both.status(), /*in_graph=*/true);
    return nullptr;
  }
  headrace::SetShape(v, *both);
  Py_RETURN_NONE;
}

Py_ssize_t Length(PyObject* self) {
  const Value& v = ValueOf(self);
  if (v.rank() > 0 && v.shape()[0] >= 0) return v.shape()[0];
  PyErr_SetString(PyExc_TypeError, v.rank() == 0
                                       ? "Scalar tensor has no `len()`"
                                       : "len of unknown shape");
  return -1;
}

int Buffer(PyObject* self, Py_buffer* view, int flags) {
  Ref array(View(self, nullptr));
  // NumPy's array does the work of the buffer: formats, strides, flags.
  if (!array) {
    // Consumers expect BufferError, whatever the reason was.
    PyErr_Clear();
    PyErr_SetString(PyExc_BufferError, "this tensor has no buffer");
    return -1;
  }
  return PyObject_GetBuffer(array.get(), view, flags);
}

int Truth(PyObject* self) {
  if (!NeedsValue(self)) return -1;
  const Tensor& t = ValueOf(self).tensor();
  // The condition of most branches: no array is made for it.
  if (t.dtype() == DType::kBool && t.rank() == 0) return t.scalar<bool>();
  // NumPy decides what else is true, and refuses several elements in its own
  // words.
  Ref array(TensorToNumpy(t, self));
  return array ? PyObject_IsTrue(array.get()) : -1;
}

PyObject* ToNumber(PyObject* self, PyObject* (*convert)(PyObject*)) {
  if (!NeedsValue(self)) return nullptr;
  Ref array(TensorToNumpy(ValueOf(self).tensor(), self));
  if (!array) return nullptr;
  // Scalars come as NumPy's numbers, strings as bytes or text: these convert.
  // An array that is left has dimensions.
  if (PyUnicode_Check(array.get()) || !IsArray(array.get())) {
    return convert(array.get());
  }
  PyErr_SetString(PyExc_TypeError,
                  "only 0-dimensional arrays can be converted to Python "
                  "scalars");
  return nullptr;
}

PyObject* Int(PyObject* self) { return ToNumber(self, PyNumber_Long); }
PyObject* Float(PyObject* self) { return ToNumber(self, PyNumber_Float); }

PyObject* Index(PyObject* self) {
  if (!NeedsValue(self)) return nullptr;
  const Tensor& t = ValueOf(self).tensor();
  // Python indexes by whole numbers only: a float is refused even where it is
  // whole.
  if (t.rank() != 0 || !(IsInteger(t.dtype()) || t.dtype() == DType::kBool)) {
    PyErr_SetString(
        PyExc_TypeError,
        "only integer scalar arrays can be converted to a scalar index");
    return nullptr;
  }
  Ref scalar(TensorToNumpy(t, self));
  return scalar ? PyNumber_Long(scalar.get()) : nullptr;
}

Py_hash_t Hash(PyObject* self) {
  const Value& v = ValueOf(self);
  // Only what equals nothing but itself may be hashed; == by elements and a
  // hash would break dictionaries.
  if (v && v.is_symbolic() && ComparesByIdentity(self)) {
    return static_cast<Py_hash_t>(v.id());
  }
  PyErr_SetString(
      PyExc_TypeError,
      "Tensor is unhashable. Instead, use tensor.ref() as the key.");
  return -1;
}

PyObject* NewObject(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError,
               "Tensors are made by operations such as tf.constant, not by %S",
               reinterpret_cast<PyObject*>(type));
  return nullptr;
}

PyGetSetDef tensor_getset[] = {
    {"dtype", Shield<Dtype>, nullptr, "The tf.DType of the elements.", nullptr},
    {"shape", Shield<GetShape>, nullptr, "The tf.TensorShape, as far as known.",
     nullptr},
    {"_id", Shield<Id>, nullptr, "A number of its own.", nullptr},
    {"name", Shield<Name>, nullptr, "\"node:output\"; symbolic tensors only.",
     nullptr},
    {}};

PyMethodDef tensor_methods[] = {
    {"_rank", Shield<Rank>, METH_NOARGS, "The number of dimensions, or None."},
    {"_sizes", Shield<Sizes>, METH_NOARGS,
     "The sizes as a tuple, None for unknown ones; None for an unknown rank."},
    {"_set_shape", Shield<SetShape>, METH_O,
     "Narrows a symbolic tensor's shape by another; ValueError where they "
     "differ."},
    {}};
PyMethodDef eager_methods[] = {
    {"numpy", Shield<Numpy>, METH_NOARGS, "A NumPy copy of the value."},
    {"_numpy_view", Shield<View>, METH_NOARGS, "A read-only NumPy view."},
    {}};

PyMemberDef tensor_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY,
     nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weak_references),
     READONLY, nullptr},
    {}};

template <typename F>
PyType_Slot Slot(int id, F* f) {
  return {id, reinterpret_cast<void*>(f)};
}

// `shown`: how Python's own messages call the type ("'...' object does not
// support item assignment"), as upstream's types have it.
PyTypeObject* MakeType(const char* name, PyType_Slot* tensor_slots,
                       PyTypeObject* base, const char* shown = nullptr) {
  const bool with_module = shown != nullptr && strchr(shown, '.') != nullptr;
  PyType_Spec tensor_spec = {
      with_module ? shown : name, sizeof(TensorObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
      tensor_slots};
  Ref bases(base ? PyTuple_Pack(1, base) : nullptr);
  auto* type = reinterpret_cast<PyTypeObject*>(
      PyType_FromSpecWithBases(&tensor_spec, bases.get()));
  if (type == nullptr || shown == nullptr) return type;
  // Python's messages print what the type was made of whole, until it is given
  // another __name__.
  const Ref text(
      with_module ? PyUnicode_FromStringAndSize(name, strchr(name, '.') - name)
                  : PyUnicode_FromString(shown));
  const bool set =
      text && PyObject_SetAttrString(reinterpret_cast<PyObject*>(type),
                                     with_module ? "__module__" : "__name__",
                                     text.get()) == 0;
  return set ? type : nullptr;
}

}  // namespace

bool AddTensorTypes(PyObject* module) {
  PyType_Slot base[] = {Slot(Py_tp_dealloc, DeallocTensor),
                        Slot(Py_tp_traverse, TraverseTensor),
                        Slot(Py_tp_clear, ClearTensor),
                        Slot(Py_tp_new, NewObject),
                        Slot(Py_tp_setattro, Shield<SetAttribute>),
                        Slot(Py_tp_getattro, Shield<GetAttribute>),
                        Slot(Py_tp_hash, Shield<Hash>),
                        Slot(Py_tp_richcompare, Shield<CompareTensors>),
                        {Py_tp_getset, tensor_getset},
                        {Py_tp_methods, tensor_methods},
                        {Py_tp_members, tensor_members},
                        Slot(Py_mp_subscript, Shield<Subscript>),
                        Slot(Py_nb_add, Shield<AddTensors>),
                        Slot(Py_nb_subtract, Shield<SubtractTensors>),
                        Slot(Py_nb_multiply, Shield<MultiplyTensors>),
                        Slot(Py_nb_true_divide, Shield<DivideTensors>),
                        Slot(Py_nb_floor_divide, Shield<FloorDivideTensors>),
                        Slot(Py_nb_remainder, Shield<ModTensors>),
                        Slot(Py_nb_power, Shield<PowerTensors>),
                        Slot(Py_nb_matrix_multiply, Shield<MatmulTensors>),
                        Slot(Py_nb_and, Shield<AndTensors>),
                        Slot(Py_nb_or, Shield<OrTensors>),
                        Slot(Py_nb_xor, Shield<XorTensors>),
                        Slot(Py_nb_negative, Shield<NegateTensor>),
                        Slot(Py_nb_absolute, Shield<AbsTensor>),
                        Slot(Py_nb_invert, Shield<InvertTensor>),
                        {0, nullptr}};
  PyType_Slot eager[] = {Slot(Py_mp_length, Shield<Length>),
                         Slot(Py_nb_bool, Shield<Truth>),
                         Slot(Py_nb_int, Shield<Int>),
                         Slot(Py_nb_float, Shield<Float>),
                         Slot(Py_nb_index, Shield<Index>),
                         Slot(Py_bf_getbuffer, Buffer),
                         {Py_tp_methods, eager_methods},
                         // Named again for each type: tp_dealloc is not
                         // inherited, a heap type gets Python's general one.
                         Slot(Py_tp_dealloc, DeallocTensor),
                         Slot(Py_tp_traverse, TraverseTensor),
                         Slot(Py_tp_clear, ClearTensor),
                         {0, nullptr}};
  PyType_Slot symbolic[] = {Slot(Py_tp_dealloc, DeallocTensor),
                            Slot(Py_tp_traverse, TraverseTensor),
                            Slot(Py_tp_clear, ClearTensor),
                            {0, nullptr}};
  tensor_type = MakeType("headrace.Tensor", base, nullptr);
  if (tensor_type == nullptr) return false;
  eager_type = MakeType("headrace.EagerTensor", eager, tensor_type,
                        "tensorflow.python.framework.ops.EagerTensor");
  symbolic_type = MakeType("headrace.SymbolicTensor", symbolic, tensor_type,
                           "SymbolicTensor");
  for (auto [name, type] :
       {std::pair{"Tensor", tensor_type}, std::pair{"EagerTensor", eager_type},
        std::pair{"SymbolicTensor", symbolic_type}}) {
    if (type == nullptr ||
        PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)) <
            0) {
      return false;
    }
  }
  return true;
}

}  // namespace headrace::bind
