// The answer to a predict request over REST.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "serving/json/predict_body.h"

namespace headrace::serving {

// {"predictions": ...} or {"outputs": ...}: a value for each of `arguments`, by
// name where there are several. InvalidArgument "Failed to write JSON value for
// tensor type: T" and, of rows, "Tensor name: N has no shape information " and
// "Tensor name: N has inconsistent batch size: A expecting: B".
StatusOr<std::string> WritePredictAnswer(PredictFormat format,
                                         absl::Span<const Argument> arguments,
                                         const Tensors& tensors);

}  // namespace headrace::serving
