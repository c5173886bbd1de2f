// Asking an op from Python: binding arguments, resolving, emitting.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bind/python/python.h"
#include "bind/value/emit_op.h"
#include "op/emitter.h"

namespace headrace::bind {

// One op as called from Python: where its arguments go, and the resolved ops
// of its last calls. Not thread-safe but for the GIL; lives for ever.
class OpCaller {
 public:
  explicit OpCaller(const OpDef& def);
  const OpDef& def() const { return def_; }

  // `inputs`: an object per ArgDef. `attrs`: an object (or null: the default)
  // per AttrDef. `name`: a string, None or null. Fills *outputs.
  bool Call(PyObject* const* inputs, PyObject* const* attrs, PyObject* name,
            ValueList* outputs);
  // The outputs in the form upstream's functions return: None, a tensor, a
  // list, or a named tuple.
  PyObject* Pack(ValueList outputs, const ResolvedOpPtr& op);
  // Call and Pack.
  PyObject* operator()(PyObject* const* inputs, PyObject* const* attrs,
                       PyObject* name);
  // "conv2d": as messages name the function.
  const std::string& python_name() const { return python_name_; }

 private:
  struct Cached {
    uint64_t epoch = 0;
    absl::InlinedVector<DType, 4> types;
    absl::InlinedVector<int, 4> lists;
    absl::InlinedVector<PyObject*, 4> attrs;  // owned
    ResolvedOpPtr op;
  };
  struct Arguments;

  bool Convert(PyObject* const* inputs, PyObject* const* attrs, PyObject* name,
               Arguments* out) const;
  bool ConvertOne(int arg, PyObject* o, PyObject* const* attrs,
                  Arguments* out) const;
  bool ConvertList(int arg, PyObject* o, PyObject* const* attrs,
                   Arguments* out) const;
  // What the other inputs and attributes say of the type attr's dtype.
  DType KnownType(const std::string& attr, PyObject* const* inputs,
                  PyObject* const* attrs) const;
  DType DefaultType(const std::string& attr) const;
  const Cached* Find(const Arguments& a, PyObject* const* attrs) const;
  ResolvedOpPtr Resolve(const Arguments& a, PyObject* const* attrs,
                        PyObject* name);
  bool CheckListLength(size_t arg, absl::Span<const int> lists) const;
  bool ToAttrs(PyObject* const* attrs, AttrMap* out) const;
  // How long each of several list inputs is.
  void SetListAttrs(const Arguments& a, AttrMap* out) const;
  PyObject* TupleType();

  const OpDef& def_;
  std::string python_name_;
  bool simple_ = false;  // no list inputs
  bool several_lists_ = false;
  bool adds_ = false;  // upstream converts x, then y with a hint, before the op
  std::vector<Cached> cache_;
  size_t next_ = 0;
  PyObject* tuple_type_ = nullptr;
};

// The caller of a registered op; null with an error set when there is none.
OpCaller* CallerOf(const char* op);

// MatMul -> mat_mul, AddV2 -> add_v2, Conv2D -> conv2d: the names of upstream's
// generated functions.
std::string PythonName(StringView op);

}  // namespace headrace::bind
