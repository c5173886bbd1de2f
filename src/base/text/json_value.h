// JSON as values: what command lines, files and other machines' answers give.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

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

}  // namespace headrace
