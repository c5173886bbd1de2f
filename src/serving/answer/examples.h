// Requests whose input is a list of tf.Examples: to classify, to regress, and
// both at once.
#pragma once

#include "serving/answer/target.h"
#include "tensorflow_serving/apis/classification.pb.h"
#include "tensorflow_serving/apis/input.pb.h"
#include "tensorflow_serving/apis/regression.pb.h"

namespace headrace::serving {

// The serialized examples as a vector of strings; the context's bytes stand in
// front of each, so that of two values for one key the example's wins.
// InvalidArgument "Input is empty.".
StatusOr<Tensor> ExamplesOf(const tensorflow::serving::Input& input);

// The places of the outputs that a signature is asked for, and the result of
// what they gave. All errors are the stock server's.
StatusOr<std::vector<int>> ClassifyOutputs(const Signature& signature);
Status ClassifyResult(const Signature& signature,
                      const std::vector<int>& places, const Tensors& outputs,
                      int64_t examples,
                      tensorflow::serving::ClassificationResult* result);
StatusOr<std::vector<int>> RegressOutputs(const Signature& signature);
Status RegressResult(const Tensors& outputs, int64_t examples,
                     tensorflow::serving::RegressionResult* result);

}  // namespace headrace::serving
