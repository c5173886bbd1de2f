// The native tape in Python; tf.GradientTape is built on it.
#pragma once

#include <nanobind/nanobind.h>

#include "op/gradient.h"

namespace headrace::bind {

// Gradients in Python: None, a tensor, or slices as a tuple of (values,
// indices, dense shape or None). ToGradient throws a TypeError for others.
nanobind::object FromGradient(const Gradient& g);
Gradient ToGradient(nanobind::handle o);

// A Python object that C++ keeps, let go with the GIL held.
std::shared_ptr<PyObject> KeptObject(nanobind::object o);

void AddTape(nanobind::module_& m);

}  // namespace headrace::bind
