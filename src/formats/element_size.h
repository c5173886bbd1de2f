// Bytes of one element as checkpoints store it.
#pragma once

#include "tensorflow/core/framework/types.pb.h"

namespace headrace {

// 0 for strings, handles, variants, reference types and unknown numbers.
// Integers of fewer than 8 bits take a byte each.
int ElementSize(tensorflow::DataType dtype);

}  // namespace headrace
