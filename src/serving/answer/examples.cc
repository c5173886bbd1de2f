#include "serving/answer/examples.h"

#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace headrace::serving {
namespace {

using tensorflow::serving::ClassificationResult;
using tensorflow::serving::Input;
using tensorflow::serving::RegressionResult;

constexpr char kInputs[] = "inputs";
constexpr char kOutputs[] = "outputs";
constexpr char kClasses[] = "classes";
constexpr char kScores[] = "scores";

StatusOr<Tensor> Serialized(
    const google::protobuf::RepeatedPtrField<tensorflow::Example>& examples,
    const std::string& context) {
  if (examples.empty()) return InvalidArgument("Input is empty.");
  HR_ASSIGN_OR_RETURN(Tensor t,
                      Tensor::Allocate(DType::kString, {examples.size()}));
  std::string* out = t.data<std::string>();
  for (const tensorflow::Example& example : examples) {
    *out = context;
    example.AppendToString(out++);
  }
  return t;
}

std::string Shown(const Signature& s) { return s.def->ShortDebugString(); }

bool TakesExamples(const Signature& s) {
  return s.inputs[0].name == kInputs && s.inputs[0].dtype == DType::kString;
}

Status CheckRows(const Tensor& t, int64_t examples) {
  if (t.shape().dim(0) == examples) return OkStatus();
  return InvalidArgument("Input batch size did not match output batch size: ",
                         examples, " vs. ", t.shape().dim(0));
}

Status CheckMatrix(const Tensor& t) {
  if (t.shape().rank() == 2) return OkStatus();
  return InvalidArgument(
      "Expected Tensor shape: [batch_size num_classes] but "
      "got ",
      t.shape());
}

}  // namespace

StatusOr<Tensor> ExamplesOf(const Input& input) {
  switch (input.kind_case()) {
    case Input::kExampleList:
      return Serialized(input.example_list().examples(), "");
    case Input::kExampleListWithContext:
      return Serialized(
          input.example_list_with_context().examples(),
          input.example_list_with_context().context().SerializeAsString());
    case Input::KIND_NOT_SET:
      break;
  }
  return InvalidArgument("Input is empty.");
}

StatusOr<std::vector<int>> ClassifyOutputs(const Signature& signature) {
  if (signature.inputs.size() != 1) {
    return InvalidArgument("Expected one input Tensor.");
  }
  const size_t n = signature.outputs.size();
  if (n != 1 && n != 2) {
    return InvalidArgument("Expected one or two output Tensors, found ", n);
  }
  if (!TakesExamples(signature)) {
    return InvalidArgument("No classification inputs found in SignatureDef: ",
                           Shown(signature));
  }
  std::vector<int> places;
  for (const char* name : {kClasses, kScores}) {
    const int place = PlaceOf(signature.outputs, name);
    if (place >= 0) places.push_back(place);
  }
  if (places.empty()) {
    return InvalidArgument(
        "Expected classification signature outputs to contain at least one of "
        "\"",
        kClasses, "\" or \"", kScores, "\". Signature was: ", Shown(signature));
  }
  return places;
}

Status ClassifyResult(const Signature& signature,
                      const std::vector<int>& places, const Tensors& outputs,
                      int64_t examples, ClassificationResult* result) {
  const Tensor* classes = nullptr;
  const Tensor* scores = nullptr;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool is_class = signature.outputs[places[i]].name == kClasses;
    const Tensor& t = outputs[i];
    const DType wanted = is_class ? DType::kString : DType::kFloat;
    if (t.dtype() != wanted) {
      return InvalidArgument("Expected ", is_class ? "classes" : "scores",
                             " Tensor of ", is_class ? "DT_STRING" : "DT_FLOAT",
                             ". Got: ",
                             tensorflow::DataType_Name(
                                 static_cast<tensorflow::DataType>(t.dtype())));
    }
    HR_RETURN_IF_ERROR(CheckMatrix(t));
    HR_RETURN_IF_ERROR(CheckRows(t, examples));
    (is_class ? classes : scores) = &t;
  }
  if (classes != nullptr && scores != nullptr &&
      classes->shape().dim(1) != scores->shape().dim(1)) {
    return InvalidArgument(
        "Tensors class and score should match in dim_size(1). Got ",
        classes->shape().dim(1), " vs. ", scores->shape().dim(1));
  }
  const int64_t width = (classes != nullptr ? classes : scores)->shape().dim(1);
  for (int64_t row = 0; row < examples; ++row) {
    auto* all = result->add_classifications();
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      auto* one = all->add_classes();
      if (classes != nullptr) one->set_label(classes->data<std::string>()[i]);
      if (scores != nullptr) one->set_score(scores->data<float>()[i]);
    }
  }
  return OkStatus();
}

StatusOr<std::vector<int>> RegressOutputs(const Signature& signature) {
  if (signature.inputs.size() != 1) {
    return InvalidArgument("Expected one input Tensor.");
  }
  if (signature.outputs.size() != 1) {
    return InvalidArgument("Expected one output Tensor.");
  }
  if (!TakesExamples(signature)) {
    return InvalidArgument("No regression inputs found in SignatureDef: ",
                           Shown(signature));
  }
  if (signature.outputs[0].name != kOutputs) {
    return InvalidArgument("No regression outputs found in SignatureDef: ",
                           Shown(signature));
  }
  return std::vector<int>{0};
}

Status RegressResult(const Tensors& outputs, int64_t examples,
                     RegressionResult* result) {
  const Tensor& t = outputs[0];
  const int rank = t.shape().rank();
  if (rank < 1 || rank > 2 || (rank == 2 && t.shape().dim(1) != 1)) {
    return InvalidArgument(
        "Expected output Tensor shape to be either [batch_size] or "
        "[batch_size, 1] but got ",
        t.shape());
  }
  if (t.dtype() != DType::kFloat) {
    return InvalidArgument("Expected output Tensor of DT_FLOAT.  Got: ",
                           tensorflow::DataType_Name(
                               static_cast<tensorflow::DataType>(t.dtype())));
  }
  HR_RETURN_IF_ERROR(CheckRows(t, examples));
  for (int64_t i = 0; i < examples; ++i) {
    result->add_regressions()->set_value(t.data<float>()[i]);
  }
  return OkStatus();
}

}  // namespace headrace::serving
