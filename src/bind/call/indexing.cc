#include "bind/call/indexing.h"

#include "absl/container/inlined_vector.h"
#include "bind/call/op_call.h"
#include "bind/python/status.h"
#include "bind/value/tensor_object.h"
#include "op/emitter.h"

namespace headrace::bind {
namespace {

// The arguments of a StridedSlice, piece by piece.
struct Pieces {
  absl::InlinedVector<int32_t, 6> begin, end, strides;
  long begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0,
       shrink_axis_mask = 0;
  void Add(int32_t b, int32_t e, int32_t s) {
    begin.push_back(b);
    end.push_back(e);
    strides.push_back(s);
  }
};

// True for a Python int that fits.
bool AsSmall(PyObject* o, int32_t* out) {
  if (!PyLong_CheckExact(o)) return false;
  int overflow;
  long v = PyLong_AsLongAndOverflow(o, &overflow);
  // INT32_MAX itself is left to Python, as an index is also the start of a
  // range that ends one further.
  if (overflow || v < INT32_MIN || v >= INT32_MAX) return false;
  *out = static_cast<int32_t>(v);
  return true;
}

// start, stop and step of a slice, new references.
bool PartsOf(PyObject* slice, Ref* start, Ref* stop, Ref* step) {
  *start = Ref(PyObject_GetAttrString(slice, "start"));
  *stop = Ref(PyObject_GetAttrString(slice, "stop"));
  *step = Ref(PyObject_GetAttrString(slice, "step"));
  return *start && *stop && *step;
}

bool AddPiece(PyObject* key, Pieces* p) {
  // A piece has a place in begin, end and strides whatever it is: the masks say
  // which of them the op reads.
  long bit = 1L << p->begin.size();
  int32_t b = 0, e = 0, s = 1;
  if (AsSmall(key, &b)) {
    p->shrink_axis_mask |= bit;
    p->Add(b, b + 1, 1);
    return true;
  }
  if (key == Py_Ellipsis) {
    p->ellipsis_mask |= bit;
  } else if (key == Py_None) {
    p->new_axis_mask |= bit;
  } else if (PySlice_Check(key)) {
    Ref start, stop, step;
    if (!PartsOf(key, &start, &stop, &step)) return false;
    if (start.get() == Py_None) {
      p->begin_mask |= bit;
    } else if (!AsSmall(start.get(), &b)) {
      return false;
    }
    if (stop.get() == Py_None) {
      p->end_mask |= bit;
    } else if (!AsSmall(stop.get(), &e)) {
      return false;
    }
    if (step.get() != Py_None && !AsSmall(step.get(), &s)) return false;
  } else {
    return false;
  }
  p->Add(b, e, s);
  return true;
}

bool Parse(PyObject* key, Pieces* p) {
  if (!PyTuple_CheckExact(key)) return AddPiece(key, p);
  Py_ssize_t n = PyTuple_Size(key);
  // Upstream reads masks of 32 bits, one a piece. An empty key is Python's to
  // judge.
  if (n == 0 || n > 30) return false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (!AddPiece(PyTuple_GetItem(key, i), p)) return false;
  }
  return true;
}

PyObject* ByPython(PyObject* tensor, PyObject* key) {
  static PyObject* function = nullptr;
  if (function == nullptr) {
    function = Import("ops.slicing_ops", "slice_tensor").release();
    if (function == nullptr) return nullptr;
  }
  return Called<PyObject_CallFunctionObjArgs>(function, tensor, key, nullptr);
}

Ref VectorOf(absl::Span<const int32_t> values) {
  return Ref(WrapValue(Value(Tensor::Vector<int32_t>(values))));
}

}  // namespace

PyObject* Subscript(PyObject* tensor, PyObject* key) {
  Pieces p;
  // In graphs the pieces are operations of their own under a name scope, which
  // Python's road makes.
  if (!CurrentEmitter()->is_eager() || !Parse(key, &p)) {
    // Whatever this parser could not take, the other one words the error.
    if (PyErr_Occurred()) PyErr_Clear();
    return ByPython(tensor, key);
  }
  static OpCaller* caller = nullptr;
  if (caller == nullptr) {
    caller = CallerOf("StridedSlice");
    if (caller == nullptr) return nullptr;
  }
  // With the slash upstream gives it: the messages of failed indexing end with
  // it.
  static PyObject* name = PyUnicode_InternFromString("strided_slice/");
  Ref begin = VectorOf(p.begin), end = VectorOf(p.end),
      strides = VectorOf(p.strides);
  Ref masks[] = {Ref(PyLong_FromLong(p.begin_mask)),
                 Ref(PyLong_FromLong(p.end_mask)),
                 Ref(PyLong_FromLong(p.ellipsis_mask)),
                 Ref(PyLong_FromLong(p.new_axis_mask)),
                 Ref(PyLong_FromLong(p.shrink_axis_mask))};
  static const char* const kMasks[] = {"begin_mask", "end_mask",
                                       "ellipsis_mask", "new_axis_mask",
                                       "shrink_axis_mask"};
  // The attributes' places are those of the registered op: found once, so that
  // its definition may order them as it likes.
  static const auto places = [] {
    absl::InlinedVector<int, 5> at;
    const auto& attrs = caller->def().attrs;
    for (const char* mask : kMasks) {
      for (size_t i = 0; i < attrs.size(); ++i) {
        if (attrs[i].name == mask) at.push_back(static_cast<int>(i));
      }
    }
    return at;
  }();
  PyObject* inputs[] = {tensor, begin.get(), end.get(), strides.get()};
  // More than StridedSlice has.
  PyObject* attrs[16] = {};
  for (size_t i = 0; i < places.size(); ++i) attrs[places[i]] = masks[i].get();
  return (*caller)(inputs, attrs, name);
}

}  // namespace headrace::bind
