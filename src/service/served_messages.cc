#include "service/served_messages.h"

#include "cc/access.h"
#include "tensor/tensor_proto.h"

namespace headrace::tf::internal {
namespace {

Error NoAnswer(const std::string& what) {
  return Error(ErrorCode::kDataLoss, "the server's answer: " + what);
}

ServedTensorInfo InfoOf(const tensorflow::TensorInfo& proto) {
  ServedTensorInfo info;
  info.dtype = static_cast<DType>(proto.dtype());
  info.shape.known_rank = !proto.tensor_shape().unknown_rank();
  for (const auto& dim : proto.tensor_shape().dim()) {
    info.shape.dims.push_back(dim.size() < 0 ? -1 : dim.size());
  }
  return info;
}

void FillFeature(const ServedExample::mapped_type& values,
                 tensorflow::Feature* feature) {
  if (auto* floats = std::get_if<std::vector<float>>(&values)) {
    feature->mutable_float_list()->mutable_value()->Assign(floats->begin(),
                                                           floats->end());
  } else if (auto* whole = std::get_if<std::vector<int64_t>>(&values)) {
    feature->mutable_int64_list()->mutable_value()->Assign(whole->begin(),
                                                           whole->end());
  } else {
    for (const std::string& s : std::get<std::vector<std::string>>(values)) {
      feature->mutable_bytes_list()->add_value(s);
    }
  }
}

}  // namespace

void FillSpec(const ServedModel& model, tensorflow::serving::ModelSpec* spec) {
  if (model.version && !model.label.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "a version or a label is asked for, not both");
  }
  spec->set_name(model.name);
  spec->set_signature_name(model.signature);
  if (model.version) spec->mutable_version()->set_value(*model.version);
  if (!model.label.empty()) spec->set_version_label(model.label);
}

void FillInput(const std::vector<ServedExample>& examples,
               tensorflow::serving::Input* input) {
  for (const ServedExample& example : examples) {
    auto* proto = input->mutable_example_list()->add_examples();
    for (const auto& [name, values] : example) {
      FillFeature(values,
                  &(*proto->mutable_features()->mutable_feature())[name]);
    }
  }
}

tensorflow::serving::PredictRequest PredictRequestOf(
    const ServedModel& model, const std::map<std::string, Tensor>& inputs,
    const std::vector<std::string>& outputs) {
  tensorflow::serving::PredictRequest request;
  FillSpec(model, request.mutable_model_spec());
  for (const auto& [name, tensor] : inputs) {
    if (tensor.is_symbolic()) {
      throw Error(
          ErrorCode::kInvalidArgument,
          absl::StrCat("input ", name, " is symbolic: it has no value"));
    }
    Check(TensorToProto(Access::ValueOf(tensor).tensor(),
                        &(*request.mutable_inputs())[name]));
  }
  for (const std::string& name : outputs) request.add_output_filter(name);
  return request;
}

ServedPrediction PredictionOf(
    const tensorflow::serving::PredictResponse& response) {
  ServedPrediction prediction;
  prediction.version = response.model_spec().version().value();
  prediction.signature = response.model_spec().signature_name();
  for (const auto& [name, proto] : response.outputs()) {
    StatusOr<headrace::Tensor> t = TensorFromProto(proto);
    if (!t.ok()) {
      throw NoAnswer(absl::StrCat("output ", name, ": ", t.status().message()));
    }
    prediction.outputs[name] = Access::Wrap(Value(*std::move(t)));
  }
  return prediction;
}

std::map<std::string, ServedSignature> SignaturesOf(
    const tensorflow::serving::GetModelMetadataResponse& response) {
  auto it = response.metadata().find("signature_def");
  tensorflow::serving::SignatureDefMap map;
  if (it == response.metadata().end() ||
      !map.ParseFromString(it->second.value())) {
    throw NoAnswer("no signatures");
  }
  std::map<std::string, ServedSignature> signatures;
  for (const auto& [name, def] : map.signature_def()) {
    ServedSignature& made = signatures[name];
    made.method_name = def.method_name();
    for (const auto& [key, info] : def.inputs())
      made.inputs[key] = InfoOf(info);
    for (const auto& [key, info] : def.outputs()) {
      made.outputs[key] = InfoOf(info);
    }
  }
  return signatures;
}

std::vector<ServedVersion> VersionsOf(
    const tensorflow::serving::GetModelStatusResponse& response) {
  std::vector<ServedVersion> versions;
  for (const auto& status : response.model_version_status()) {
    versions.push_back(
        {status.version(),
         tensorflow::serving::ModelVersionStatus::State_Name(status.state()),
         static_cast<int>(status.status().error_code()),
         status.status().error_message()});
  }
  return versions;
}

}  // namespace headrace::tf::internal
