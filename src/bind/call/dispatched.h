// Public functions that registered dispatchers may answer for: what
// headrace/framework/dispatch.py registers is asked here.
#pragma once

#include "bind/python/python.h"

namespace headrace::bind {

// Adds the type DispatchedFunction and the functions
//   dispatched(function, row): `function` as it is called publicly; `row` is
//     what api_names.txt says of it, or None;
//   watch_type(type): arguments of this type, alone or in lists, are shown to
//     the dispatchers before the function is called;
//   set_dispatchers(before, after, all): before(api, args, kwargs) gives a
//     result or NotImplemented; after(api, args, kwargs, error) the same once
//     the call has raised TypeError or ValueError. With `all`, `after` is asked
//     whatever the arguments are.
bool AddDispatched(PyObject* module);

// True where objects of this type are shown to the dispatchers.
bool IsWatched(PyObject* o);

// Asks the dispatchers for the operator that the public function `name`
// ("math.add") stands for. True where one answered: *result is what it gave, or
// null with an error set.
bool DispatchOperator(const char* name, PyObject* x, PyObject* y,
                      PyObject** result);

}  // namespace headrace::bind
