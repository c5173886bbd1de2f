#include "command/text/json_example.h"

#include <cstring>

#include "absl/strings/numbers.h"
#include "base/coding.h"

namespace headrace::command {
namespace {

using Kind = JsonValue::Kind;

// Numbers of fields of the messages, and of lists in a Feature.
constexpr uint64_t kOnly = 1, kKey = 1, kValue = 2;
enum List : uint64_t { kBytesList = 1, kFloatList = 2, kInt64List = 3 };

void PutField(uint64_t number, StringView bytes, std::string* out) {
  PutVarint64(out, number << 3 | 2);
  PutVarint64(out, bytes.size());
  out->append(bytes.data(), bytes.size());
}

bool IsWhole(const JsonValue& v) {
  int64_t whole;
  return v.kind == Kind::kNumber && absl::SimpleAtoi(v.text, &whole);
}

StatusOr<std::string> FloatsOf(const JsonValue& values) {
  std::string packed;
  for (const JsonValue& v : values.items) {
    float f;
    if (v.kind != Kind::kNumber || !absl::SimpleAtof(v.text, &f)) {
      return InvalidArgument("expected numbers, got ", v.text);
    }
    uint32_t bits;
    std::memcpy(&bits, &f, sizeof bits);
    PutFixed32(&packed, bits);
  }
  return packed;
}

StatusOr<std::string> WholeNumbersOf(const JsonValue& values) {
  std::string packed;
  for (const JsonValue& v : values.items) {
    int64_t whole;
    if (v.kind != Kind::kNumber || !absl::SimpleAtoi(v.text, &whole)) {
      return InvalidArgument("expected whole numbers, got ", v.text);
    }
    PutVarint64(&packed, static_cast<uint64_t>(whole));
  }
  return packed;
}

StatusOr<std::string> FeatureOf(const JsonValue& values) {
  if (values.kind != Kind::kList) {
    return InvalidArgument("feature value must be a list");
  }
  std::string feature, list;
  if (values.items.empty()) return feature;
  const JsonValue& first = values.items[0];
  if (first.kind == Kind::kText) {
    for (const JsonValue& v : values.items) {
      if (v.kind != Kind::kText) {
        return InvalidArgument("expected texts, got ", v.text);
      }
      PutField(kOnly, v.text, &list);
    }
    PutField(kBytesList, list, &feature);
    return feature;
  }
  if (first.kind != Kind::kNumber) {
    return InvalidArgument(
        "expected texts or numbers; others are not supported for "
        "tf.train.Feature");
  }
  const bool is_whole = IsWhole(first);
  HR_ASSIGN_OR_RETURN(const std::string packed,
                      is_whole ? WholeNumbersOf(values) : FloatsOf(values));
  PutField(kOnly, packed, &list);
  PutField(is_whole ? kInt64List : kFloatList, list, &feature);
  return feature;
}

}  // namespace

StatusOr<Tensor> ExamplesFromJson(const JsonValue& value) {
  if (value.kind != Kind::kList) {
    return InvalidArgument("expected a list of objects, one an example");
  }
  HR_ASSIGN_OR_RETURN(
      Tensor examples,
      Tensor::Allocate(DType::kString,
                       Shape({static_cast<int64_t>(value.items.size())})));
  auto* out = examples.data<std::string>();
  for (const JsonValue& example : value.items) {
    if (example.kind != Kind::kObject) {
      return InvalidArgument("expected a list of objects, one an example");
    }
    std::string features;
    for (size_t i = 0; i < example.keys.size(); ++i) {
      StatusOr<std::string> feature = FeatureOf(example.items[i]);
      if (!feature.ok()) {
        return Status(feature.status().code(),
                      absl::StrCat("feature ", example.keys[i], ": ",
                                   feature.status().message()));
      }
      std::string entry;
      PutField(kKey, example.keys[i], &entry);
      PutField(kValue, *feature, &entry);
      PutField(kOnly, entry, &features);
    }
    PutField(kOnly, features, out++);
  }
  return examples;
}

}  // namespace headrace::command
