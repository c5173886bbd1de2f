// Any bytes as the body of a predict request and of a classify request; the
// first byte chooses the type of the inputs.
#include "serving/json/examples_body.h"
#include "serving/json/predict_answer.h"
#include "serving/json/predict_body.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  using namespace headrace::serving;
  if (size == 0) return 0;
  constexpr DType kTypes[] = {DType::kFloat,  DType::kDouble, DType::kInt32,
                              DType::kInt64,  DType::kUint8,  DType::kUint64,
                              DType::kString, DType::kBool,   DType::kHalf};
  const DType dtype =
      kTypes[static_cast<unsigned char>(data[0]) % std::size(kTypes)];
  const StringView text(data + 1, size - 1);
  const std::vector<Argument> one = {{"x", dtype}},
                              two = {{"a", dtype}, {"b", DType::kFloat}};
  const auto body = PredictBody::Parse(text);
  if (body.ok()) {
    body->SignatureName().status().IgnoreError();
    for (const auto& arguments : {one, two}) {
      const auto inputs = body->Read(arguments);
      if (!inputs.ok()) continue;
      WritePredictAnswer(inputs->format, arguments, inputs->tensors)
          .status()
          .IgnoreError();
    }
  }
  ReadExamplesBody(text).status().IgnoreError();
  return 0;
}
