#include "serving/json/examples_body.h"

#include <charconv>
#include <cstdlib>
#include <system_error>

#include "serving/json/json_text.h"
#include "serving/json/predict_body.h"
#include "tensorflow/core/example/example.pb.h"

namespace headrace::serving {
namespace {

using tensorflow::Example;
using tensorflow::Feature;

enum class FeatureKind { kNone, kInt64, kFloat, kBytes };

const char* NameOf(FeatureKind kind) {
  constexpr const char* kNames[] = {"none", "int64", "float", "bytes"};
  return kNames[static_cast<int>(kind)];
}

// Adds the values of one feature.
class FeatureReader {
 public:
  FeatureReader(const std::string& name, Feature* feature)
      : name_(name), feature_(feature) {}

  // The value, or list of values, that `at` stands at; goes past it.
  Status Read(JsonReader& at) {
    if (at.kind() != JsonKind::kArray) return Add(at.Skip());
    for (bool more = at.Enter(); more; more = at.Next()) {
      HR_RETURN_IF_ERROR(Add(at.Skip()));
    }
    return OkStatus();
  }

 private:
  Status Add(StringView value) {
    switch (JsonKindOf(value)) {
      case JsonKind::kTrue:
      case JsonKind::kFalse:
        return AddInt(JsonKindOf(value) == JsonKind::kTrue);
      case JsonKind::kNumber:
        return AddNumber(value);
      case JsonKind::kString:
        return AddBytes(JsonString(value));
      case JsonKind::kObject:
        if (IsBase64Object(JsonReader(value))) {
          HR_ASSIGN_OR_RETURN(std::string bytes, Base64Bytes(value));
          return AddBytes(std::move(bytes));
        }
        [[fallthrough]];
      default:
        return InvalidArgument("Feature: ", name_,
                               " has element with unexpected JSON type: ",
                               JsonKindName(JsonKindOf(value)));
    }
  }

  Status AddNumber(StringView value) {
    const char* end = value.data() + value.size();
    int64_t whole = 0;
    auto read = std::from_chars(value.data(), end, whole);
    if (read.ec == std::errc() && read.ptr == end) return AddInt(whole);
    uint64_t over = 0;
    read = std::from_chars(value.data(), end, over);
    if (read.ec == std::errc() && read.ptr == end) {
      return InvalidArgument(
          "Feature: ", name_,
          " has uint64_t element. Only int64_t is supported.");
    }
    double real = 0;  // stays where the number is next to nothing
    std::from_chars(value.data(), end, real);
    HR_RETURN_IF_ERROR(Expect(FeatureKind::kFloat));
    feature_->mutable_float_list()->add_value(static_cast<float>(real));
    return OkStatus();
  }

  Status AddInt(int64_t value) {
    HR_RETURN_IF_ERROR(Expect(FeatureKind::kInt64));
    feature_->mutable_int64_list()->add_value(value);
    return OkStatus();
  }

  Status AddBytes(std::string value) {
    HR_RETURN_IF_ERROR(Expect(FeatureKind::kBytes));
    feature_->mutable_bytes_list()->add_value(std::move(value));
    return OkStatus();
  }

  Status Expect(FeatureKind kind) {
    if (kind_ == FeatureKind::kNone) kind_ = kind;
    if (kind_ == kind) return OkStatus();
    return InvalidArgument("Unexpected element type in feature: ", name_,
                           " expecting type: ", NameOf(kind_));
  }

  const std::string& name_;
  Feature* const feature_;
  FeatureKind kind_ = FeatureKind::kNone;
};

Status ReadExample(JsonReader& at, Example* example) {
  if (at.kind() != JsonKind::kObject) {
    return InvalidArgument("Example must be JSON object but got JSON ",
                           JsonKindName(at.kind()));
  }
  auto& features = *example->mutable_features()->mutable_feature();
  for (bool more = at.Enter(); more; more = at.Next()) {
    const std::string name = JsonString(at.Key());
    Feature& feature = features[name];
    feature.Clear();
    HR_RETURN_IF_ERROR(FeatureReader(name, &feature).Read(at));
  }
  return OkStatus();
}

// Adds each element of `member` to `list`, an ExampleList or one with context.
template <typename List>
Status ReadExampleList(const JsonMember& member, List* list) {
  JsonReader at(member.value);
  for (bool more = at.Enter(); more; more = at.Next()) {
    HR_RETURN_IF_ERROR(ReadExample(at, list->add_examples()));
  }
  return OkStatus();
}

}  // namespace

StatusOr<ExamplesBody> ReadExamplesBody(StringView text) {
  constexpr StringView kNames[] = {"signature_name", "context", "examples"};
  HR_ASSIGN_OR_RETURN(const JsonBody body, CheckJson(text, kNames));
  HR_RETURN_IF_ERROR(CheckIsObject(body));
  const JsonMember &context = body.members[1], &examples = body.members[2];
  ExamplesBody made;
  HR_ASSIGN_OR_RETURN(made.signature_name, SignatureNameOf(body.members[0]));
  if (examples.value.empty()) {
    return InvalidArgument("JSON Value: ", JsonExcerpt(body.value),
                           " key 'examples' is expected and was not found");
  }
  if (JsonKindOf(examples.value) != JsonKind::kArray) {
    return InvalidArgument("Expecting 'examples' value to be an list/array");
  }
  if (examples.items == 0) {
    return InvalidArgument("'examples' value is an empty array");
  }
  if (context.value.empty()) {
    HR_RETURN_IF_ERROR(
        ReadExampleList(examples, made.input.mutable_example_list()));
    return made;
  }
  auto* list = made.input.mutable_example_list_with_context();
  JsonReader at(context.value);
  HR_RETURN_IF_ERROR(ReadExample(at, list->mutable_context()));
  HR_RETURN_IF_ERROR(ReadExampleList(examples, list));
  return made;
}

}  // namespace headrace::serving
