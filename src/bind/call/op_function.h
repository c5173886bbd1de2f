// The op functions that Python calls: native, made from the registry.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Adds the type OpFunction and the functions
//   raw_op(name): the function of tf.raw_ops, arguments by keyword only;
//   op_function(op, name, parameters, doc): a public face. `parameters` is a
//     list of (parameter, input or attr or "name"[, default]);
//   op_names(): the names of all registered ops.
bool AddOpFunctions(PyObject* module);

}  // namespace headrace::bind
