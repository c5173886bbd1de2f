#include "base/text/json_value.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/utf8.h"

namespace headrace {
namespace {

constexpr int kDeepest = 100;
constexpr int32_t kHighSurrogate = 0xd800, kLowSurrogate = 0xdc00;

bool IsWordPart(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' ||
         c == '-' || c == '.' || c == '_';
}

class JsonParser {
 public:
  explicit JsonParser(StringView text) : text_(text) {}

  StatusOr<JsonValue> Parse() {
    JsonValue value;
    HR_RETURN_IF_ERROR(ParseValue(0, &value));
    SkipSpace();
    if (at_ < text_.size()) return Wrong("the end");
    return value;
  }

 private:
  Status Wrong(StringView expected) const {
    return InvalidArgument("JSON: expected ", expected, " at character ", at_,
                           at_ < text_.size() ? "" : ", where it ends");
  }
  void SkipSpace() {
    while (at_ < text_.size() &&
           absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status ParseValue(int depth, JsonValue* value) {
    if (depth > kDeepest) {
      return InvalidArgument("JSON nests deeper than ", kDeepest);
    }
    SkipSpace();
    if (at_ == text_.size()) return Wrong("a value");
    switch (text_[at_]) {
      case '[':
        return ParseList(depth, value);
      case '{':
        return ParseObject(depth, value);
      case '"':
      case '\'':
        value->kind = JsonValue::Kind::kText;
        return ParseText(&value->text);
      default:
        return ParseWord(value);
    }
  }

  Status ParseList(int depth, JsonValue* value) {
    value->kind = JsonValue::Kind::kList;
    ++at_;
    if (Take(']')) return OkStatus();
    do {
      HR_RETURN_IF_ERROR(ParseValue(depth + 1, &value->items.emplace_back()));
    } while (Take(','));
    return Take(']') ? OkStatus() : Wrong(", or ]");
  }

  Status ParseObject(int depth, JsonValue* value) {
    value->kind = JsonValue::Kind::kObject;
    ++at_;
    if (Take('}')) return OkStatus();
    do {
      SkipSpace();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
        return Wrong("a key in quotes");
      }
      HR_RETURN_IF_ERROR(ParseText(&value->keys.emplace_back()));
      if (!Take(':')) return Wrong(":");
      HR_RETURN_IF_ERROR(ParseValue(depth + 1, &value->items.emplace_back()));
    } while (Take(','));
    return Take('}') ? OkStatus() : Wrong(", or }");
  }

  Status ParseText(std::string* out) {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        *out += text_[at_++];
        continue;
      }
      if (++at_ == text_.size()) break;
      HR_RETURN_IF_ERROR(ParseEscape(text_[at_++], out));
    }
    if (at_ == text_.size()) return Wrong("the text's last quote");
    ++at_;
    return OkStatus();
  }

  Status ParseEscape(char c, std::string* out) {
    constexpr StringView kEscapes = "\"\\/'bfnrt";
    constexpr StringView kMeanings = "\"\\/'\b\f\n\r\t";
    if (c == 'u') return ParseCodePoint(out);
    if (c == 'x') {
      HR_ASSIGN_OR_RETURN(const int32_t byte, ParseHex(2));
      *out += static_cast<char>(byte);
      return OkStatus();
    }
    const size_t place = kEscapes.find(c);
    if (place == StringView::npos) return Wrong("a character behind \\");
    *out += kMeanings[place];
    return OkStatus();
  }

  Status ParseCodePoint(std::string* out) {
    HR_ASSIGN_OR_RETURN(int32_t c, ParseHex(4));
    if (c >= kHighSurrogate && c < kLowSurrogate &&
        absl::StartsWith(text_.substr(at_), "\\u")) {
      at_ += 2;
      HR_ASSIGN_OR_RETURN(const int32_t low, ParseHex(4));
      c = low >= kLowSurrogate && low < 0xe000
              ? 0x10000 + ((c - kHighSurrogate) << 10) + (low - kLowSurrogate)
              : kReplacementCharacter;
    } else if (c >= kHighSurrogate && c < 0xe000) {
      c = kReplacementCharacter;
    }
    Utf8Append(c, out);
    return OkStatus();
  }

  StatusOr<int32_t> ParseHex(int digits) {
    int32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      if (at_ == text_.size() ||
          !absl::ascii_isxdigit(static_cast<unsigned char>(text_[at_]))) {
        return Wrong("a hexadecimal digit");
      }
      const char c = absl::ascii_tolower(text_[at_++]);
      value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  }

  Status ParseWord(JsonValue* value) {
    const size_t begin = at_;
    while (at_ < text_.size() && IsWordPart(text_[at_])) ++at_;
    const StringView word = text_.substr(begin, at_ - begin);
    const std::string lower = absl::AsciiStrToLower(word);
    value->text = lower;
    if (lower == "true" || lower == "false") {
      value->kind = JsonValue::Kind::kBool;
    } else if (lower == "null" || lower == "none") {
      value->kind = JsonValue::Kind::kNull;
    } else if (IsNumber(lower)) {
      value->kind = JsonValue::Kind::kNumber;
    } else {
      at_ = begin;
      return Wrong("a value");
    }
    return OkStatus();
  }

  static bool IsNumber(StringView word) {
    if (!word.empty() && (word[0] == '-' || word[0] == '+')) {
      word.remove_prefix(1);
    }
    if (word == "inf" || word == "infinity" || word == "nan") return true;
    if (word.empty() || !(absl::ascii_isdigit(word[0]) || word[0] == '.')) {
      return false;
    }
    return word.find_first_not_of("0123456789.e+-") == StringView::npos;
  }

  const StringView text_;
  size_t at_ = 0;
};

}  // namespace

const JsonValue* JsonValue::Find(StringView key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] == key) return &items[i];
  }
  return nullptr;
}

StatusOr<JsonValue> ParseJson(StringView text) {
  return JsonParser(text).Parse();
}

}  // namespace headrace
