#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "serving/json/element_writer.h"
#include "serving/v2/datatypes.h"
#include "serving/v2/infer_body.h"

namespace headrace::serving {
namespace {

// A guess of the text of one element, for the memory to begin with.
constexpr size_t kBytesOfNumber = 12;

bool IsUtf8(StringView s) {
  for (size_t at = 0; at < s.size();) {
    if (Utf8Next(s, &at) < 0) return false;
  }
  return true;
}

Status CheckJsonable(const NamedTensor& output) {
  const Tensor& t = output.tensor;
  if (IsRawOnly(t.dtype())) {
    return InvalidArgument("output '", output.name, "' is of ",
                           DatatypeOf(t.dtype()),
                           ", which goes as binary data alone");
  }
  if (t.dtype() != DType::kString) return OkStatus();
  for (const std::string& s : t.span<std::string>()) {
    if (IsUtf8(s)) continue;
    return InvalidArgument("output '", output.name,
                           "' has bytes that are no UTF-8, which go as binary "
                           "data alone");
  }
  return OkStatus();
}

void AppendData(const Tensor& t, std::string* out) {
  out->push_back('[');
  DispatchDType(t.dtype(), WrittenTypes(), [&](auto tag) {
    bool first = true;
    for (const auto& value : t.span<typename decltype(tag)::type>()) {
      if (!first) out->push_back(',');
      first = false;
      AppendElement(value, false, out);
    }
  });
  out->push_back(']');
}

void AppendHead(const InferReply& reply, const InferAnswer& answer,
                std::string* out) {
  out->append("{\"model_name\":");
  AppendJsonString(answer.spec.name(), out);
  absl::StrAppend(out, ",\"model_version\":\"", answer.spec.version().value(),
                  "\"");
  if (!reply.id.empty()) {
    out->append(",\"id\":");
    AppendJsonString(reply.id, out);
  }
  out->append(",\"outputs\":[");
}

Status AppendOutput(const NamedTensor& output, bool binary, std::string* out,
                    size_t* binary_bytes) {
  const Tensor& t = output.tensor;
  HR_ASSIGN_OR_RETURN(const size_t size,
                      RawSize(t, absl::StrCat("output '", output.name, "'")));
  if (!binary) HR_RETURN_IF_ERROR(CheckJsonable(output));
  out->append("{\"name\":");
  AppendJsonString(output.name, out);
  absl::StrAppend(out, ",\"datatype\":\"", DatatypeOf(t.dtype()),
                  "\",\"shape\":[", absl::StrJoin(t.shape().dims(), ","), "],");
  if (binary) {
    absl::StrAppend(out, "\"parameters\":{\"binary_data_size\":", size, "}}");
    *binary_bytes += size;
    return OkStatus();
  }
  out->append("\"data\":");
  AppendData(t, out);
  out->push_back('}');
  return OkStatus();
}

}  // namespace

StatusOr<InferAnswerBody> WriteInferBody(const InferReply& reply,
                                         const InferAnswer& answer) {
  const auto is_binary = [&reply](size_t i) {
    return i < reply.binary_output.size() ? reply.binary_output[i]
                                          : reply.binary;
  };
  InferAnswerBody body;
  size_t binary_bytes = 0, elements = 0;
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    if (!is_binary(i)) elements += answer.outputs[i].tensor.num_elements();
  }
  body.bytes.reserve(256 + elements * kBytesOfNumber);
  AppendHead(reply, answer, &body.bytes);
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    if (i > 0) body.bytes.push_back(',');
    body.binary = body.binary || is_binary(i);
    HR_RETURN_IF_ERROR(AppendOutput(answer.outputs[i], is_binary(i),
                                    &body.bytes, &binary_bytes));
  }
  body.bytes.append("]}");
  body.json_bytes = body.bytes.size();
  body.bytes.reserve(body.json_bytes + binary_bytes);
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    if (is_binary(i)) AppendRaw(answer.outputs[i].tensor, &body.bytes);
  }
  return body;
}

}  // namespace headrace::serving
