// Messages of TensorFlow Serving's protocol from and to what ServingClient
// takes and gives. Functions throw tf::Error.
#pragma once

#include "headrace/serving_client.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/predict.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace headrace::tf::internal {

void FillSpec(const ServedModel& model, tensorflow::serving::ModelSpec* spec);
void FillInput(const std::vector<ServedExample>& examples,
               tensorflow::serving::Input* input);
tensorflow::serving::PredictRequest PredictRequestOf(
    const ServedModel& model, const std::map<std::string, Tensor>& inputs,
    const std::vector<std::string>& outputs);
// kDataLoss for tensors that cannot be read.
ServedPrediction PredictionOf(
    const tensorflow::serving::PredictResponse& response);
std::map<std::string, ServedSignature> SignaturesOf(
    const tensorflow::serving::GetModelMetadataResponse& response);
std::vector<ServedVersion> VersionsOf(
    const tensorflow::serving::GetModelStatusResponse& response);

}  // namespace headrace::tf::internal
