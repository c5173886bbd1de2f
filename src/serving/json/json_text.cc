#include "serving/json/json_text.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "serving/json/json_string.h"

namespace headrace::serving {
namespace {

// Bytes of a value that a message quotes.
constexpr size_t kLongestExcerpt = 256;

// Where the next bracket, brace or quote is, or the end, and the commas before.
const char* PastNumbers(const char* p, const char* end, int64_t* commas) {
  // Vectors of bytes: places are counted alone, and summed before one is full.
  using Bytes [[gnu::vector_size(16)]] = uint8_t;
  for (bool plain = true; plain && end - p >= 16;) {
    Bytes counts = {};
    for (int i = 0; i < 255 && end - p >= 16; ++i, p += 16) {
      Bytes bytes;
      std::memcpy(&bytes, p, sizeof bytes);
      // A bit apart are [ and {, and ] and }.
      const Bytes braces = bytes | 0x20;
      const auto others = (braces == '{') | (braces == '}') | (bytes == '"');
      uint64_t halves[2];
      std::memcpy(halves, &others, sizeof halves);
      plain = (halves[0] | halves[1]) == 0;
      if (!plain) break;
      counts -= reinterpret_cast<Bytes>(bytes == ',');  // -1 where they are
    }
    for (int i = 0; i < 16; ++i) *commas += counts[i];
  }
  for (; p != end; ++p) {
    if (*p == ']' || *p == '[' || *p == '{' || *p == '}' || *p == '"') break;
    *commas += *p == ',';
  }
  return p;
}

// Past the string that begins at p, with a quote.
const char* PastString(const char* p, const char* end) {
  for (++p;; p += 2) {
    p = PlainRun(p, end);
    if (*p == '"') return p + 1;
  }
}

void AppendUtf8(int code, std::string* out) {
  const auto add = [&](int byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 63));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 63));
    add(0x80 | (code & 63));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 63));
    add(0x80 | (code >> 6 & 63));
    add(0x80 | (code & 63));
  }
}

// The escape at p, after its backslash; goes past it.
const char* AppendEscape(const char* p, const char* end, std::string* out) {
  switch (*p) {
    case 'b':
      out->push_back('\b');
      return p + 1;
    case 'f':
      out->push_back('\f');
      return p + 1;
    case 'n':
      out->push_back('\n');
      return p + 1;
    case 'r':
      out->push_back('\r');
      return p + 1;
    case 't':
      out->push_back('\t');
      return p + 1;
    case 'u':
      break;
    default:
      out->push_back(*p);
      return p + 1;
  }
  int code = 0, low = 0;
  HexNumber(p + 1, end, &code);
  p += 5;
  if (code >= 0xD800 && code <= 0xDBFF) {
    HexNumber(p + 2, end, &low);
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    p += 6;
  }
  AppendUtf8(code, out);
  return p;
}

}  // namespace

const char* JsonKindName(JsonKind kind) {
  constexpr const char* kNames[] = {"Null",  "False",  "True",  "Object",
                                    "Array", "String", "Number"};
  return kNames[static_cast<int>(kind)];
}

JsonKind JsonKindOf(char first) {
  switch (first) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
      return JsonKind::kTrue;
    case 'f':
      return JsonKind::kFalse;
    case 'n':
      return JsonKind::kNull;
    default:
      return JsonKind::kNumber;
  }
}

bool JsonReader::Enter() {
  ++p_;
  SkipSpace();
  if (*p_ != ']' && *p_ != '}') return true;
  ++p_;
  return false;
}

bool JsonReader::Next() {
  SkipSpace();
  const bool more = *p_++ == ',';
  if (more) SkipSpace();
  return more;
}

StringView JsonReader::Key() {
  const char* start = p_;
  p_ = PastString(p_, end_);
  const StringView key(start, p_ - start);
  SkipSpace();
  ++p_;  // the colon
  SkipSpace();
  return key;
}

const JsonFloats::Run* JsonFloats::RunBehind(const char* p) const {
  const auto it = std::lower_bound(
      runs.begin(), runs.end(), p,
      [](const Run& run, const char* at) { return run.begin < at; });
  return it == runs.end() ? nullptr : &*it;
}

const char* JsonReader::NextFloats() const {
  const auto* run = floats_ == nullptr ? nullptr : floats_->RunBehind(p_);
  return run == nullptr ? nullptr : run->begin;
}

absl::Span<const float> JsonReader::FloatsAhead() const {
  const auto* run = floats_->RunBehind(p_);
  return absl::MakeConstSpan(floats_->values).subspan(run->first, run->count);
}

int64_t JsonReader::NumbersAhead() {
  int64_t count = 0;
  const char* stop = PastNumbers(p_, end_, &count);
  if (stop == end_ || *stop != ']') return 0;
  p_ = stop;
  return count;
}

StringView JsonReader::Skip() {
  const char* start = p_;
  if (*p_ == '"') {
    p_ = PastString(p_, end_);
  } else if (*p_ != '[' && *p_ != '{') {
    const auto ends = [](char c) {
      return c == ',' || c == ']' || c == '}' || c <= ' ';
    };
    while (p_ != end_ && !ends(*p_)) p_ = PastDigits(p_ + 1, end_);
  } else {
    for (int64_t depth = 0;;) {
      const char c = *p_;
      if (c == '"') {
        p_ = PastString(p_, end_);
        continue;
      }
      ++p_;
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && --depth == 0) break;
    }
  }
  return StringView(start, p_ - start);
}

std::string JsonString(StringView quoted) {
  std::string out;
  const char* p = quoted.data() + 1;
  const char* end = quoted.data() + quoted.size() - 1;
  for (;;) {
    const char* run = PlainRun(p, end);
    out.append(p, run - p);
    if (run == end) return out;
    p = AppendEscape(run + 1, end, &out);
  }
}

bool JsonStringIs(StringView quoted, StringView plain) {
  const StringView inner = quoted.substr(1, quoted.size() - 2);
  if (inner == plain) return true;
  // Each character is escaped by six at most.
  return inner.size() <= 6 * plain.size() &&
         inner.find('\\') != StringView::npos && JsonString(quoted) == plain;
}

std::string JsonExcerpt(StringView value) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < value.size(); ++i) {
    if (out.size() >= kLongestExcerpt) return out + " ...";
    const char c = value[i];
    if (!in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
      continue;
    }
    out.push_back(c);
    if (c == '"') in_string = !in_string;
    if (c == '\\') out.push_back(value[++i]);
  }
  return out;
}

bool IsBase64Object(JsonReader at) {
  if (at.kind() != JsonKind::kObject) return false;
  if (!at.Enter() || !JsonStringIs(at.Key(), "b64")) return false;
  at.Skip();
  return !at.Next();
}

StatusOr<std::string> Base64Bytes(StringView value) {
  JsonReader at(value);
  if (!IsBase64Object(at) || !at.Enter() ||
      (at.Key(), at.kind() != JsonKind::kString)) {
    return InvalidArgument("JSON Value: ", JsonExcerpt(value),
                           " not formatted correctly for base64 data");
  }
  const StringView quoted = at.Skip();
  StringView text = quoted.substr(1, quoted.size() - 2);
  std::string decoded, bytes;
  if (text.find('\\') != StringView::npos) {
    decoded = JsonString(quoted);
    text = decoded;
  }
  if (!absl::Base64Unescape(text, &bytes)) {
    return InvalidArgument("JSON Value: ", JsonExcerpt(value),
                           " Unable to base64 decode");
  }
  return bytes;
}

}  // namespace headrace::serving
