// JSON text looked at where it lies: checked once, then read in place, without
// a tree of its values. Neither recurses, however deep the text is nested.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace::serving {

// Numbers of lists as floats, which checking them gives nearly for nothing.
struct JsonFloats {
  // Elements that follow one another, from the comma before the first one to
  // behind the last one.
  struct Run {
    const char* begin;
    const char* end;
    int64_t first, count;  // among `values`
  };
  // The first one that begins there or behind it, or null.
  const Run* RunBehind(const char* p) const;

  std::vector<Run> runs;  // in the order of the text
  std::vector<float> values;
};

// A member of the outermost object.
struct JsonMember {
  StringView value;   // empty: there is no such member
  int64_t items = 0;  // of a list: how many it has
  JsonFloats floats;  // of lists in it that are long, as far as they were read
};

// A body that begins with one well-formed value; what follows that is ignored.
// The rules are RapidJSON's, as are the reasons it gives: NaN, Infinity and Inf
// with or without a minus are numbers, bytes above 127 are not looked at.
struct JsonBody {
  StringView value;
  std::vector<JsonMember> members;  // of the wanted names, the first of each
};
// InvalidArgument "JSON Parse error: REASON at offset: N". `wanted` are plain
// names, without characters that JSON escapes. The result points into `text`.
StatusOr<JsonBody> CheckJson(StringView text,
                             absl::Span<const StringView> wanted = {});

enum class JsonKind { kNull, kFalse, kTrue, kObject, kArray, kString, kNumber };
// "Null", "False", ...
const char* JsonKindName(JsonKind kind);
// Of a checked value.
JsonKind JsonKindOf(char first);
inline JsonKind JsonKindOf(StringView value) { return JsonKindOf(value[0]); }

// Walks through a value that CheckJson has accepted.
class JsonReader {
 public:
  explicit JsonReader(StringView checked)
      : p_(checked.data()), end_(checked.data() + checked.size()) {}
  // `member` outlives the reader.
  explicit JsonReader(const JsonMember& member) : JsonReader(member.value) {
    floats_ = &member.floats;
  }

  // Of the value it stands at.
  JsonKind kind() const { return JsonKindOf(*p_); }
  const char* here() const { return p_; }
  const char* end() const { return end_; }
  // For who has read a number up to there.
  void MoveTo(const char* p) { p_ = p; }

  // At a list or object: goes to its first element (or key), or, where it has
  // none, past it and gives false.
  bool Enter();
  // After an element: goes to the next one (or its key), or out of the list or
  // object and gives false.
  bool Next();
  // At a key: goes to its value and gives the key with its quotes.
  StringView Key();
  // Goes past a value, and gives its text.
  StringView Skip();
  // Behind an element of a list: how many more there are where nothing but
  // numbers and literals follows, to whose end it goes; else 0, and stays.
  int64_t NumbersAhead();
  // Where floats are known next, here or further on; null where nowhere.
  const char* NextFloats() const;
  // There: what they are, and past them.
  absl::Span<const float> FloatsAhead() const;
  void PassFloats() { p_ = floats_->RunBehind(p_)->end; }

 private:
  void SkipSpace() {
    while (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t') ++p_;
  }
  const char* p_;
  const char* end_;
  const JsonFloats* floats_ = nullptr;
};

// What a checked string says, given with its quotes.
std::string JsonString(StringView quoted);
bool JsonStringIs(StringView quoted, StringView plain);
// A checked value for messages: without spaces, cut at 256 bytes.
std::string JsonExcerpt(StringView value);
// Whether the value that `at` stands at is an object with the one member "b64".
bool IsBase64Object(JsonReader at);
// Its bytes. InvalidArgument "JSON Value: V not formatted correctly for base64
// data" and "Unable to base64 decode".
StatusOr<std::string> Base64Bytes(StringView value);

}  // namespace headrace::serving
