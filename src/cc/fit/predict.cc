// What models give for datasets and tensors.
#include "cc/compose.h"
#include "headrace/fit/train.h"
#include "headrace/function.h"

namespace headrace::tf::train {

using internal::Op;
using internal::Throw;

namespace {

// Parts of one tensor, along the batch.
Tensor Joined(const std::vector<Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<Tensor> all = parts;
  all.push_back(internal::Int(0));
  return Op("ConcatV2", all, {{"N", static_cast<int64_t>(parts.size())}});
}

const Tensor& Only(const std::vector<Tensor>& outputs) {
  if (outputs.size() == 1) return outputs[0];
  Throw(ErrorCode::kInvalidArgument,
        absl::StrCat("Predict: the model has ", outputs.size(),
                     " outputs; PredictAll gives them all"));
}

}  // namespace

std::vector<Tensor> PredictAll(layers::Layer& model,
                               const data::Dataset& batches, int64_t inputs) {
  if (inputs < 1) {
    Throw(ErrorCode::kInvalidArgument, "Predict: a model has inputs");
  }
  // One function for all batches: it is traced once for each shape, most often
  // twice, for the last batch's too.
  const Function step(
      [&model](const std::vector<Tensor>& x) { return model.ModelOutputs(x); });
  std::vector<std::vector<Tensor>> parts;  // of each output
  for (const data::Element& element : batches) {
    if (element.size() < static_cast<size_t>(inputs)) {
      Throw(ErrorCode::kInvalidArgument,
            absl::StrCat("Predict: elements of ", element.size(),
                         " components for a model of ", inputs, " inputs"));
    }
    const std::vector<Tensor> found =
        step({element.begin(), element.begin() + inputs});
    // The first batch says how many outputs there are.
    parts.resize(found.size());
    for (size_t i = 0; i < found.size(); ++i) parts[i].push_back(found[i]);
  }
  if (parts.empty()) {
    Throw(ErrorCode::kInvalidArgument, "Predict: the dataset has no elements");
  }
  std::vector<Tensor> whole;
  for (const auto& p : parts) whole.push_back(Joined(p));
  return whole;
}

Tensor Predict(layers::Layer& model, const data::Dataset& batches,
               int64_t inputs) {
  return Only(PredictAll(model, batches, inputs));
}

Tensor Predict(layers::Layer& model, const Tensor& x, int64_t batch_size) {
  if (batch_size < 1) {
    Throw(ErrorCode::kInvalidArgument,
          absl::StrCat("Predict: batches of ", batch_size));
  }
  const data::Dataset rows = data::Dataset::FromTensorSlices({x});
  return Predict(model, rows.Batch(batch_size));
}

}  // namespace headrace::tf::train
