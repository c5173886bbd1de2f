// Values as the stock server writes them in JSON, at the end of a text.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace headrace::serving {

// With 6 significant digits where these read back as the same value, else with
// 9 (a float) or 17 (a double); whole numbers without an exponent end in ".0".
// NaN, Infinity and -Infinity as these words.
void AppendJsonNumber(float value, std::string* out);
void AppendJsonNumber(double value, std::string* out);
// In quotes; bytes above 127 as they are.
void AppendJsonString(StringView value, std::string* out);
// {"b64": "..."}
void AppendBase64(StringView bytes, std::string* out);

// {"error": "text"}, the body of an answer.
std::string JsonError(StringView text);

}  // namespace headrace::serving
