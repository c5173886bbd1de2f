// The model that a request or a response is of.
#pragma once

#include "serving/models.h"
#include "tensorflow_serving/apis/inference.pb.h"

namespace headrace::serving {

// Of several tasks, that of the first.
inline const ModelSpec& SpecOf(
    const tensorflow::serving::MultiInferenceRequest& request) {
  return request.tasks().empty() ? ModelSpec::default_instance()
                                 : request.tasks(0).model_spec();
}
inline const ModelSpec& SpecOf(
    const tensorflow::serving::MultiInferenceResponse& response) {
  return response.results().empty() ? ModelSpec::default_instance()
                                    : response.results(0).model_spec();
}
template <typename Message>
const ModelSpec& SpecOf(const Message& message) {
  return message.model_spec();
}

}  // namespace headrace::serving
