#include "serving/json/json_writer.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "absl/strings/escaping.h"
#include "serving/json/json_float.h"
#include "serving/json/json_string.h"

namespace headrace::serving {
namespace {

constexpr int kShortDigits = 6;

// A whole number without an exponent reads as an integer: ".0" is added.
void AppendWithPoint(const char* text, const char* end, std::string* out) {
  bool whole = true;
  for (const char* p = text; p != end; ++p) {
    whole = whole && (*p == '-' || (*p >= '0' && *p <= '9'));
  }
  out->append(text, end - text);
  if (whole) out->append(".0");
}

// How many digits the shortest text has that reads back as the value, which is
// normal: those have their 6 digits for them alone, subnormal ones do not.
template <typename T>
bool IsShort(T value) {
  if (std::fpclassify(value) == FP_SUBNORMAL) {
    char text[32];
    const auto written =
        std::to_chars(text, text + sizeof(text), value,
                      std::chars_format::general, kShortDigits);
    T back = 0;
    const auto read = std::from_chars(text, written.ptr, back);
    return read.ec == std::errc() && back == value;
  }
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value,
                                     std::chars_format::scientific);
  int digits = 0;
  for (const char* p = text; p != written.ptr && *p != 'e'; ++p) {
    digits += *p >= '0' && *p <= '9';
  }
  return digits <= kShortDigits;
}

template <typename T>
void AppendNumber(T value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out->append(value < 0 ? "-Infinity" : "Infinity");
    return;
  }
  char text[40];
  const int digits =
      IsShort(value) ? kShortDigits : std::numeric_limits<T>::max_digits10;
  const auto written = std::to_chars(text, text + sizeof(text), value,
                                     std::chars_format::general, digits);
  AppendWithPoint(text, written.ptr, out);
}

void AppendControl(unsigned char c, std::string* out) {
  constexpr char kHex[] = "0123456789ABCDEF";
  switch (c) {
    case '\b':
      out->append("\\b");
      return;
    case '\f':
      out->append("\\f");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    default:
      out->append("\\u00");
      out->push_back(kHex[c >> 4]);
      out->push_back(kHex[c & 15]);
  }
}

}  // namespace

void AppendJsonNumber(float value, std::string* out) {
  char text[kLongestFloat];
  if (const char* end = FastFloatText(value, text)) {
    out->append(text, end - text);
  } else {
    AppendNumber(value, out);
  }
}
void AppendJsonNumber(double value, std::string* out) {
  AppendNumber(value, out);
}

void AppendJsonString(StringView value, std::string* out) {
  out->push_back('"');
  const char* p = value.data();
  const char* end = p + value.size();
  for (;;) {
    const char* run = PlainRun(p, end);
    out->append(p, run - p);
    if (run == end) break;
    if (*run == '"' || *run == '\\') {
      out->push_back('\\');
      out->push_back(*run);
    } else {
      AppendControl(static_cast<unsigned char>(*run), out);
    }
    p = run + 1;
  }
  out->push_back('"');
}

void AppendBase64(StringView bytes, std::string* out) {
  out->append("{\"b64\": \"");
  out->append(absl::Base64Escape(bytes));
  out->append("\"}");
}

std::string JsonError(StringView text) {
  std::string out = "{\n    \"error\": ";
  AppendJsonString(text, &out);
  out.append("\n}");
  return out;
}

}  // namespace headrace::serving
