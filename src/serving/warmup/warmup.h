// Running requests against a version before it serves.
#pragma once

#include <functional>

#include "serving/answer/answers.h"
#include "tensorflow_serving/servables/tensorflow/session_bundle_config.pb.h"

namespace headrace::serving {

// What answers the requests; tests put others here.
template <typename Request, typename Response>
using AnswerFunction = std::function<void(
    Models&, const AnswerOptions&, CallPtr, const Request&, Done<Response>)>;
struct WarmupAnswers {
  AnswerFunction<tensorflow::serving::PredictRequest,
                 tensorflow::serving::PredictResponse>
      predict = Predict;
  AnswerFunction<tensorflow::serving::ClassificationRequest,
                 tensorflow::serving::ClassificationResponse>
      classify = Classify;
  AnswerFunction<tensorflow::serving::RegressionRequest,
                 tensorflow::serving::RegressionResponse>
      regress = Regress;
  AnswerFunction<tensorflow::serving::MultiInferenceRequest,
                 tensorflow::serving::MultiInferenceResponse>
      multi_inference = MultiInference;
};

struct WarmupOptions {
  // How often each request runs: --num_request_iterations_for_warmup, where 0
  // means 1.
  int request_iterations = 1;
  // Requests that run at a time.
  int threads = 1;
  AnswerOptions answer_options;
  WarmupAnswers answers;
};

// InvalidArgument for negative numbers; Unimplemented for options that are not
// there.
StatusOr<WarmupOptions> CheckWarmupOptions(
    const tensorflow::serving::ModelWarmupOptions& options);

// Runs the requests of the version's warm-up file; nothing where it has none.
// Which model and version they name does not matter. The first error ends it:
// those of ReadWarmupFile, Unimplemented for kinds of requests that cannot be
// run, those of the requests, and those of a stop of the calling thread.
Status WarmUp(ServablePtr version, const WarmupOptions& options);

}  // namespace headrace::serving
