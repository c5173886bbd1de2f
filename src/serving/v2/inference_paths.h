// The Open Inference Protocol over REST.
#pragma once

#include <memory>

#include "serving/rest/rest_front.h"
#include "serving/v2/model_facts.h"

namespace headrace::serving {

struct InferencePathOptions {
  int64_t timeout_ms = 30000;  // of an inference or a load
  // Told of each inference, whose method is "infer"; empty: nobody.
  std::function<void(const Answered&)> answered;
};

// All paths of /v2 but those of /v2/health. `workers` outlives it: loads, and
// requests that a model has to be loaded for, run on them.
RestExtra InferencePaths(std::shared_ptr<InferenceServer> server,
                         Workers& workers, InferencePathOptions options);

}  // namespace headrace::serving
