// The answers of PredictionService, whatever way a request came.
#pragma once

#include <functional>

#include "serving/model/call.h"
#include "serving/models.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/inference.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"
#include "tensorflow_serving/apis/session_service.pb.h"

namespace headrace::serving {

// Called once, in any thread, perhaps before the function returns that was
// given it.
template <typename Response>
using Done = std::function<void(StatusOr<Response>)>;

// What a server does by its flags.
struct AnswerOptions {
  // --enable_signature_method_name_check
  bool check_method_names = false;
  // --enable_serialization_as_tensor_content
  bool tensor_content = false;
  // --max_request_memory_bytes, of the tensors of a request; 0: no limit.
  int64_t max_request_memory_bytes = 0;
};

// Errors are those of the stock server, texts included. `models` outlives the
// call; `request` is not looked at once the function has returned.
void Predict(Models& models, const AnswerOptions& options, CallPtr call,
             const tensorflow::serving::PredictRequest& request,
             Done<tensorflow::serving::PredictResponse> done);
void Classify(Models& models, const AnswerOptions& options, CallPtr call,
              const tensorflow::serving::ClassificationRequest& request,
              Done<tensorflow::serving::ClassificationResponse> done);
void Regress(Models& models, const AnswerOptions& options, CallPtr call,
             const tensorflow::serving::RegressionRequest& request,
             Done<tensorflow::serving::RegressionResponse> done);
void MultiInference(Models& models, const AnswerOptions& options, CallPtr call,
                    const tensorflow::serving::MultiInferenceRequest& request,
                    Done<tensorflow::serving::MultiInferenceResponse> done);
// Returns when it has run. `models` were loaded with ServableOptions::session.
StatusOr<tensorflow::serving::SessionRunResponse> SessionRun(
    Models& models, const AnswerOptions& options, const CallPtr& call,
    const tensorflow::serving::SessionRunRequest& request);
Status GetModelMetadata(
    Models& models, const tensorflow::serving::GetModelMetadataRequest& request,
    tensorflow::serving::GetModelMetadataResponse* response);

}  // namespace headrace::serving
