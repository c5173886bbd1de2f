// Any bytes as a request of PredictionService: the first one chooses which.
// What is answered is written as bytes.
#include <memory>
#include <string>

#include "serving/answer/answers.h"
#include "serving/fixed_models.h"
#include "serving/model/test_models.h"

namespace headrace::serving {
namespace {

namespace api = tensorflow::serving;

constexpr int64_t kMostBytes = 1 << 20;

// Predicts x + y; classifies and regresses examples by how long they are.
std::string WriteFuzzedModel() {
  const std::string floats = "attr { key: 'T' value { type: DT_FLOAT } } ";
  const auto signature = [](const std::string& key, const std::string& in,
                            const std::string& out) {
    return "signature_def { key: '" + key +
           "' value { method_name: 'tensorflow/serving/" + key + "' " + in +
           out + "} } ";
  };
  const std::string examples =
      InfoText("inputs", "inputs", "examples:0", "DT_STRING");
  return WriteTestModel(
      "fuzzed",
      "graph_def { " + PlaceholderText("x", "DT_FLOAT") +
          PlaceholderText("y", "DT_FLOAT") +
          PlaceholderText("examples", "DT_STRING") +
          "node { name: 'sum' op: 'AddV2' input: 'x' input: 'y' " + floats +
          "} node { name: 'length' op: 'StringLength' input: 'examples' } "
          "node { name: 'score' op: 'Cast' input: 'length' attr { key: 'SrcT' "
          "value { type: DT_INT32 } } attr { key: 'DstT' value { type: "
          "DT_FLOAT "
          "} } } node { name: 'one' op: 'Const' attr { key: 'dtype' value { "
          "type: DT_INT32 } } attr { key: 'value' value { tensor { dtype: "
          "DT_INT32 tensor_shape {} int_val: 1 } } } } node { name: 'scores' "
          "op: "
          "'ExpandDims' input: 'score' input: 'one' " +
          floats +
          "} node { name: 'classes' op: 'ExpandDims' input: 'examples' input: "
          "'one' attr { key: 'T' value { type: DT_STRING } } } "
          "versions { producer: 1882 } } " +
          signature("regress", examples,
                    InfoText("outputs", "outputs", "score:0", "DT_FLOAT")) +
          signature("classify", examples,
                    InfoText("outputs", "classes", "classes:0", "DT_STRING") +
                        InfoText("outputs", "scores", "scores:0", "DT_FLOAT")) +
          "signature_def { key: 'serving_default' value { method_name: "
          "'tensorflow/serving/predict' " +
          InfoText("inputs", "x", "x:0", "DT_FLOAT") +
          InfoText("inputs", "y", "y:0", "DT_FLOAT") +
          InfoText("outputs", "sum", "sum:0", "DT_FLOAT") + "} }");
}

// Of one model, m.
FixedModels& TheModels() {
  static FixedModels* const models = [] {
    ServableOptions options;
    options.max_request_memory_bytes = kMostBytes;
    auto loaded = Servable::Load({"m", 1}, WriteFuzzedModel(), options);
    MustBe(loaded.ok(), internal::Printable(loaded.status()));
    auto* made = new FixedModels;
    made->Add(*std::move(loaded));
    return made;
  }();
  return *models;
}

template <typename Request, typename Response, typename F>
void Ask(F answer, StringView bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return;
  }
  AnswerOptions options;
  options.max_request_memory_bytes = kMostBytes;
  options.tensor_content = bytes.size() % 2 == 1;
  answer(TheModels(), options, std::make_shared<Call>(), request,
         [](StatusOr<Response> response) {
           if (response.ok()) (void)response->SerializeAsString();
         });
}

void AskForMetadata(StringView bytes) {
  api::GetModelMetadataRequest request;
  api::GetModelMetadataResponse response;
  if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    GetModelMetadata(TheModels(), request, &response).IgnoreError();
  }
}

}  // namespace
}  // namespace headrace::serving

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace::serving;
  if (size == 0) return 0;
  const headrace::StringView bytes(data + 1, size - 1);
  switch (static_cast<unsigned char>(data[0]) % 5) {
    case 0:
      Ask<api::PredictRequest, api::PredictResponse>(&Predict, bytes);
      break;
    case 1:
      Ask<api::ClassificationRequest, api::ClassificationResponse>(&Classify,
                                                                   bytes);
      break;
    case 2:
      Ask<api::RegressionRequest, api::RegressionResponse>(&Regress, bytes);
      break;
    case 3:
      Ask<api::MultiInferenceRequest, api::MultiInferenceResponse>(
          &MultiInference, bytes);
      break;
    default:
      AskForMetadata(bytes);
  }
  return 0;
}
