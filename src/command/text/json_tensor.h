// Tensors as JSON.
#pragma once

#include "command/text/json_writer.h"
#include "tensor/tensor.h"

namespace headrace::command {

// As nested lists of numbers, bools and texts; complex numbers as pairs.
// Strings that are no UTF-8 come as {"b64": "..."}. Resources and variants are
// null. What has no elements, but sizes that would take more than a million
// empty lists, is one.
void WriteJson(const Tensor& tensor, JsonWriter& json);

}  // namespace headrace::command
