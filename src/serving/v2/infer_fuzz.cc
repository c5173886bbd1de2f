// Any bytes as a ModelInferRequest and as the body of an inference over REST;
// the first two say how many of them are JSON (the second of them 255: all).
#include "serving/v2/infer_body.h"
#include "serving/v2/infer_message.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  using namespace headrace::serving;
  const auto answer_with = [](InferRequest& request) {
    InferAnswer answer;
    answer.outputs = std::move(request.inputs);
    return answer;
  };
  inference::ModelInferRequest message;
  if (message.ParseFromArray(data, static_cast<int>(size))) {
    const bool raw = message.raw_input_contents_size() != 0;
    auto request = ReadInferMessage(&message);
    if (request.ok()) {
      WriteInferMessage(message.id(), raw, answer_with(*request))
          .status()
          .IgnoreError();
    }
  }
  if (size < 2) return 0;
  const auto low = static_cast<unsigned char>(data[0]);
  const auto high = static_cast<unsigned char>(data[1]);
  const StringView text(data + 2, size - 2);
  auto body =
      ReadInferBody(text, high == 255 ? "" : absl::StrCat(low + 256 * high));
  if (body.ok()) {
    WriteInferBody(body->reply, answer_with(body->request))
        .status()
        .IgnoreError();
  }
  return 0;
}
