// Python objects to op attributes.
#pragma once

#include "bind/python/python.h"
#include "op/op_def.h"

namespace headrace::bind {

// `o` as the attribute's kind, with upstream's TypeErrors. `op` names the op
// in messages ("conv2d"). False with an error set.
bool ToAttr(const AttrDef& attr, PyObject* o, StringView op, AttrValue* out);

// An attribute as a Python object (DType, TensorShape, bytes for strings, a
// Tensor, a name for functions); null with an error set.
PyObject* FromAttr(const AttrValue& value);

// A short string that is the function's name, of anything that stands for one:
// a str, or an object with a `name` and `_as_function_ref`.
bool ToFuncRef(PyObject* o, FuncRef* out);

}  // namespace headrace::bind
