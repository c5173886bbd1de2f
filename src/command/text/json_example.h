// tf.train.Examples as they are given in JSON.
#pragma once

#include "base/text/json_value.h"

namespace headrace::command {

// A list of objects, {"age": [22.0], "name": ["x"]}, as a vector of serialized
// tf.train.Examples: an object's texts, numbers with a point and whole numbers
// become bytes, floats and int64s. InvalidArgument, naming the feature, where a
// value is no list, or its elements are of several kinds or none of these.
StatusOr<Tensor> ExamplesFromJson(const JsonValue& value);

}  // namespace headrace::command
