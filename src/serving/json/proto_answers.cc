#include "serving/json/proto_answers.h"

#include <google/protobuf/util/json_util.h>

#include "serving/json/json_writer.h"

namespace headrace::serving {
namespace {

Status Convert(const google::protobuf::Message& message, bool spaces,
               std::string* out) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = spaces;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const auto s =
      google::protobuf::util::MessageToJsonString(message, out, options);
  if (s.ok()) return OkStatus();
  return Internal("no JSON of ", message.GetTypeName(), ": ",
                  std::string(s.message()));
}

}  // namespace

StatusOr<std::string> ProtoJson(const google::protobuf::Message& message) {
  std::string out;
  HR_RETURN_IF_ERROR(Convert(message, true, &out));
  return out;
}

std::string ClassifyJson(
    const tensorflow::serving::ClassificationResponse& response) {
  std::string out = "{\n    \"results\": [";
  bool first_row = true;
  for (const auto& row : response.result().classifications()) {
    out.append(first_row ? "[" : ", [");
    first_row = false;
    bool first = true;
    for (const auto& c : row.classes()) {
      out.append(first ? "[" : ", [");
      first = false;
      AppendJsonString(c.label(), &out);
      out.append(", ");
      AppendJsonNumber(c.score(), &out);
      out.push_back(']');
    }
    out.push_back(']');
  }
  out.append("\n    ]\n}");
  return out;
}

std::string RegressJson(
    const tensorflow::serving::RegressionResponse& response) {
  std::string out = "{\n    \"results\": [";
  bool first = true;
  for (const auto& r : response.result().regressions()) {
    if (!first) out.append(", ");
    first = false;
    AppendJsonNumber(r.value(), &out);
  }
  out.append("\n    ]\n}");
  return out;
}

StatusOr<std::string> MetadataJson(
    const tensorflow::serving::GetModelMetadataResponse& response) {
  std::string spec;
  HR_RETURN_IF_ERROR(Convert(response.model_spec(), false, &spec));
  std::string out =
      absl::StrCat("{\n\"model_spec\": ", spec, ",\n\"metadata\": {");
  bool first = true;
  for (const auto& [key, any] : response.metadata()) {
    tensorflow::serving::SignatureDefMap map;
    if (!any.UnpackTo(&map)) {
      return DataLoss("metadata ", key, " is no SignatureDefMap");
    }
    std::string value;
    HR_RETURN_IF_ERROR(Convert(map, true, &value));
    if (!first) out.append(",\n");
    first = false;
    AppendJsonString(key, &out);
    absl::StrAppend(&out, ": ", value);
  }
  out.append("}\n}");
  return out;
}

}  // namespace headrace::serving
