// Answers over REST that are protos elsewhere.
#pragma once

#include <string>

#include "base/status.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/get_model_metadata.pb.h"
#include "tensorflow_serving/apis/get_model_status.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace headrace::serving {

// Proto3's JSON with the fields' names of the proto, defaults and 64-bit
// integers as strings.
StatusOr<std::string> ProtoJson(const google::protobuf::Message& message);

// {"results": [[["label", score], ...], ...]}
std::string ClassifyJson(
    const tensorflow::serving::ClassificationResponse& response);
// {"results": [value, ...]}
std::string RegressJson(
    const tensorflow::serving::RegressionResponse& response);
// {"model_spec": ..., "metadata": {"signature_def": ...}}, without the types
// that Any has in JSON. DataLoss where one cannot be parsed.
StatusOr<std::string> MetadataJson(
    const tensorflow::serving::GetModelMetadataResponse& response);

}  // namespace headrace::serving
