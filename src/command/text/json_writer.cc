#include "command/text/json_writer.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace headrace::command {
namespace {

template <typename T>
std::string ShortestText(T value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  char room[40];  // the shortest form of a double has 24 characters at most
  return std::string(room, std::to_chars(room, room + sizeof room, value).ptr);
}

}  // namespace

std::string JsonText(StringView text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t c = Utf8Next(text, &at);
    if (c < 0) {
      Utf8Append(kReplacementCharacter, &out);
    } else if (c == '"' || c == '\\') {
      out += {'\\', static_cast<char>(c)};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 ||
               c == 0x2029) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      absl::StrAppend(&out, text.substr(begin, at - begin));
    }
  }
  return out + "\"";
}

void JsonWriter::NewLine() {
  text_ += '\n';
  text_.append(2 * levels_.size(), ' ');
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  if (!levels_.back().empty) text_ += ',';
  levels_.back().empty = false;
  NewLine();
}

void JsonWriter::Raw(StringView value) {
  Separate();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Begin(char open) {
  Separate();
  text_ += open;
  levels_.push_back({open == '{' ? '}' : ']'});
}

void JsonWriter::End() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty) NewLine();
  text_ += level.close;
}

void JsonWriter::Key(StringView key) {
  Separate();
  absl::StrAppend(&text_, JsonText(key), ": ");
  after_key_ = true;
}

void JsonWriter::Text(StringView text) { Raw(JsonText(text)); }
void JsonWriter::Number(double value) { Raw(ShortestText(value)); }
void JsonWriter::Single(float value) { Raw(ShortestText(value)); }

}  // namespace headrace::command
