// JSON as inputs of models are given in it: on command lines and in files.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace headrace::command {

struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kText, kList, kObject };
  Kind kind = Kind::kNull;
  // A text's characters; a number's, a bool's as written ("1e3", "true").
  std::string text;
  std::vector<JsonValue> items;   // of a list, or an object
  std::vector<std::string> keys;  // of an object, one an item

  const JsonValue* Find(StringView key) const;
};

// JSON, and what Python prints beside it: texts in single quotes, True, False,
// nan and inf. InvalidArgument with the place where it is neither, or nests
// deeper than 100.
StatusOr<JsonValue> ParseJson(StringView text);

// The elements of nested lists as a tensor. {"b64": "..."} is a text of any
// bytes. InvalidArgument where lists of one level differ in length, or an
// element is no `dtype`; Unimplemented for dtypes that no text stands for.
StatusOr<Tensor> TensorFromJson(const JsonValue& value, DType dtype);

}  // namespace headrace::command
