// StructuredValues as Python objects.
#pragma once

#include <nanobind/nanobind.h>

#include "tensorflow/core/protobuf/struct.pb.h"

namespace headrace::bind {

// The object of a data type.
nanobind::object DTypeOfProto(tensorflow::DataType dtype);

// None, bools, ints, floats, texts, shapes and dtypes are themselves; all else
// is a tuple that begins with what it is:
//
//   ("list", values)  ("tuple", values)  ("dict", {name: value})
//   ("named_tuple", name, [(field, value), ...])
//   ("tensor_spec", shape, dtype, name)
//   ("bounded_tensor_spec", shape, dtype, minimum, maximum, name)
//   ("type_spec", class, class_name, state, num_components)
//   ("tensor", tensor)  ("array", tensor)
//
// Names of specs may be None.
nanobind::object ToPython(const tensorflow::StructuredValue& value);
// Raises a TypeError for other objects.
void FromPython(nanobind::handle object, tensorflow::StructuredValue* value);

}  // namespace headrace::bind
