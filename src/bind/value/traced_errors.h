// What is said of arguments of wrong types while a graph is recorded: there
// upstream checks them by the op's definition, one after the other, and raises
// Python's TypeError and ValueError.
#pragma once

#include "absl/types/span.h"
#include "bind/python/python.h"
#include "op/op_def.h"
#include "tensor/dtype.h"

namespace headrace::bind {

// Raises for the first input whose dtype does not fit, then for the first
// attribute out of `attrs` (of the definition's order, null: not given) that is
// not allowed. `types`: the inputs flattened; `lists`: the lengths of list
// inputs where the op has several. False, and nothing raised, when all fit.
bool RaiseUnfitTypes(const OpDef& def, absl::Span<const DType> types,
                     absl::Span<const int> lists, PyObject* const* attrs);

// Turns a TypeError that is set, from making `wanted` of `data`, into one that
// names the argument and the op. Does nothing in eager code.
void NameUnfitArgument(const OpDef& def, const ArgDef& arg, PyObject* data,
                       DType wanted);

}  // namespace headrace::bind
