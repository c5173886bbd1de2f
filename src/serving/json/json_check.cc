#include <charconv>
#include <cstring>
#include <system_error>

#include "serving/json/json_float.h"
#include "serving/json/json_string.h"
#include "serving/json/json_text.h"

namespace headrace::serving {
namespace {

// Numbers of fewer characters before their exponent, and without one, cannot
// be over what a double holds.
constexpr ptrdiff_t kSurelyFinite = 300;

// Floats that are kept of a list at least, and of a body at most: they come on
// top of the tensor that they are for.
constexpr size_t kShortestRun = 8, kMostKept = size_t{1} << 20;

class JsonChecker {
 public:
  JsonChecker(StringView text, absl::Span<const StringView> wanted)
      : wanted_(wanted),
        begin_(text.data()),
        p_(text.data()),
        end_(text.data() + text.size()) {
    body_.members.resize(wanted.size());
  }

  StatusOr<JsonBody> Check() {
    SkipSpace();
    const char* start = p_;
    if (p_ == end_ || *p_ == '\0') {
      Fail("The document is empty.", p_);
    } else if (Values()) {
      body_.value = StringView(start, p_ - start);
      return std::move(body_);
    }
    return InvalidArgument("JSON Parse error: ", reason_,
                           " at offset: ", failed_ - begin_);
  }

 private:
  // What came of trying to read a value: it is read, or a list or object begins
  // whose first value comes next.
  enum class Step { kFailed, kRead, kOpened };

  bool Values() {
    for (;;) {
      const Step step = Value();
      if (step == Step::kFailed) return false;
      if (step == Step::kOpened) continue;
      for (bool closed = true; closed;) {
        if (open_.empty()) return true;
        NoteRead();
        if (open_.back() == '[') PlainNumbers();
        if (!After(&closed)) return false;
      }
    }
  }

  Step Value() {
    SkipSpace();
    switch (Peek()) {
      case '{':
        return Open('{', '}');
      case '[':
        return Open('[', ']');
      case '"':
        return String() ? Step::kRead : Step::kFailed;
      case 't':
        return Literal("true");
      case 'f':
        return Literal("false");
      case 'n':
        return Literal("null");
      default:
        return Number() ? Step::kRead : Step::kFailed;
    }
  }

  Step Open(char opens, char closes) {
    ++p_;
    SkipSpace();
    if (Peek() == closes) {
      ++p_;
      return Step::kRead;
    }
    open_.push_back(opens);
    if (opens == '{' && !Name()) return Step::kFailed;
    return Step::kOpened;
  }

  // After a value of the innermost list or object: goes to the next one, or
  // past the end of it all.
  bool After(bool* closed) {
    SkipSpace();
    const bool object = open_.back() == '{';
    const char c = Peek();
    *closed = c == (object ? '}' : ']');
    if (!*closed && c != ',') {
      return Fail(object ? "Missing a comma or } after an object member."
                         : "Missing a comma or ] after an array element.",
                  p_);
    }
    ++p_;
    if (*closed) {
      open_.pop_back();
    } else if (object) {
      SkipSpace();
      return Name();
    }
    return true;
  }

  bool Name() {
    if (Peek() != '"') {
      return Fail("Missing a name for object member.", p_);
    }
    const char* start = p_;
    if (!String()) return false;
    const StringView name(start, p_ - start);
    SkipSpace();
    if (Peek() != ':') {
      return Fail("Missing a colon after a name of object member.", p_);
    }
    ++p_;
    SkipSpace();
    if (open_.size() == 1) NoteName(name);
    return true;
  }

  // A member of the outermost object begins.
  void NoteName(StringView name) {
    member_ = nullptr;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (body_.members[i].value.empty() && JsonStringIs(name, wanted_[i])) {
        member_ = &body_.members[i];
        member_start_ = p_;
      }
    }
  }
  // Behind an element of a list: goes on behind those that are numbers without
  // an exponent, as most of long lists are, and keeps them if the member is
  // wanted. What else follows, and what is near the text's end, is left to
  // Value.
  void PlainNumbers() {
    std::vector<float>* kept = member_ ? &member_->floats.values : nullptr;
    const char* begin = p_;
    size_t first = kept ? kept->size() : 0;
    for (PlainNumber number; PastPlainNumber(&number); NoteRead()) {
      if (kept == nullptr) continue;
      float value;
      if (kept->size() < kMostKept && number.Value(&value)) {
        kept->push_back(value);
        continue;
      }
      KeepRun(begin, number.begin, first);
      begin = p_;
      first = kept->size();
    }
    if (kept != nullptr) KeepRun(begin, p_, first);
  }

  struct PlainNumber {
    const char* begin;  // the comma
    uint64_t digits;
    ptrdiff_t count, behind;  // digits in all, and behind the point
    bool minus;

    bool Value(float* out) const {
      if (count > 19 || behind > kMostPower ||
          !NearestFloat(digits, -static_cast<int>(behind), out)) {
        return false;
      }
      *out = minus ? -*out : *out;
      return true;
    }
  };

  // Past a comma and a number, or false, and stays.
  bool PastPlainNumber(PlainNumber* number) {
    if (end_ - p_ <= 16 || *p_ != ',') return false;
    const char* p = p_ + 1;
    if (*p == ' ') [[likely]]
      ++p;
    number->minus = *p == '-';
    p += number->minus;
    const char* start = p;
    uint64_t digits = 0;
    for (; end_ - p > 8 && *p >= '0' && *p <= '9'; ++p) {
      digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    }
    number->count = p - start;
    number->behind = 0;
    if (p == start || (*start == '0' && p - start > 1)) return false;
    if (*p == '.') {
      start = p + 1;
      // Zeros before other digits have no weight.
      if (digits == 0) number->count = -CountZeros(start, end_);
      p = ReadDigits(start, end_, &digits);
      if (p == start) return false;
      number->behind = p - start;
      number->count += number->behind;
    }
    if (p == end_ || (*p != ',' && *p != ']')) return false;
    if (p - p_ >= kSurelyFinite) return false;
    number->digits = digits;
    number->begin = p_;
    p_ = p;
    return true;
  }

  // The floats from `first` on lie from `begin` to `end`; few are not worth it.
  void KeepRun(const char* begin, const char* end, size_t first) {
    JsonFloats& floats = member_->floats;
    const size_t count = floats.values.size() - first;
    if (count < kShortestRun) return floats.values.resize(first);
    floats.runs.push_back(
        {begin, end, static_cast<int64_t>(first), static_cast<int64_t>(count)});
  }

  // A value within a list or object has been read.
  void NoteRead() {
    if (open_.size() > 2 || member_ == nullptr) return;
    if (open_.size() == 2) {
      ++member_->items;
      return;
    }
    member_->value = StringView(member_start_, p_ - member_start_);
    member_ = nullptr;
  }

  Step Literal(const char* word) {
    for (; *word != '\0'; ++word, ++p_) {
      if (Peek() != *word) {
        Fail("Invalid value.", p_);
        return Step::kFailed;
      }
    }
    return Step::kRead;
  }

  bool String() {
    for (++p_;;) {
      p_ = PlainRun(p_, end_);
      const char c = Peek();
      if (c == '"') {
        ++p_;
        return true;
      }
      if (c == '\\') {
        if (!Escape()) return false;
      } else if (c == '\0') {
        return Fail("Missing a closing quotation mark in string.", p_);
      } else {
        return Fail("Invalid escape character in string.", p_);
      }
    }
  }

  bool Escape() {
    const char* start = p_++;
    const char c = Peek();
    if (c != 'u') {
      if (c == '\0' || std::strchr("\"\\/bfnrt", c) == nullptr) {
        return Fail("Invalid escape character in string.", start);
      }
      ++p_;
      return true;
    }
    ++p_;
    int code = 0;
    if (!Hex(start, &code)) return false;
    if (code < 0xD800 || code > 0xDBFF) return true;
    if (end_ - p_ >= 2 && p_[0] == '\\' && p_[1] == 'u') {
      p_ += 2;
      if (!Hex(start, &code)) return false;
      if (code >= 0xDC00 && code <= 0xDFFF) return true;
    }
    return Fail("The surrogate pair in string is invalid.", start);
  }

  bool Hex(const char* start, int* code) {
    if (HexNumber(p_, end_, code)) {
      p_ += 4;
      return true;
    }
    return Fail("Incorrect hex digit after \\u escape in string.", start);
  }

  bool Number() {
    const char* start = p_;
    p_ += Peek() == '-';
    if (Peek() == 'I' || Peek() == 'N') return NotFinite();
    if (!Digit()) return Fail("Invalid value.", p_);
    if (Peek() == '0') {
      ++p_;
    } else {
      while (Digit()) ++p_;  // few, mostly
    }
    bool check = p_ - start >= kSurelyFinite;
    if (Peek() == '.') {
      ++p_;
      if (!Digit()) return Fail("Miss fraction part in number.", p_);
      SkipDigits();
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++p_;
      if (Peek() == '+' || Peek() == '-') ++p_;
      if (!Digit()) return Fail("Miss exponent in number.", p_);
      SkipDigits();
      check = true;
    }
    if (check && TooBig(start)) {
      return Fail("Number too big to be stored in double.", start);
    }
    return true;
  }

  bool NotFinite() {
    Step step;
    if (Peek() == 'N') {
      step = Literal("NaN");
    } else {
      step = Literal("Inf");
      if (step == Step::kRead && Peek() == 'i') step = Literal("inity");
    }
    return step == Step::kRead;
  }

  // Out of range is said of numbers that are too small, too.
  bool TooBig(const char* start) const {
    double value = 1;
    const auto read = std::from_chars(start, p_, value);
    if (read.ec != std::errc::result_out_of_range) return false;
    // The exponent that the first digit has tells them apart.
    const char* digits = *start == '-' ? start + 1 : start;
    int64_t first = 0, exponent = 0;
    bool point = false, found = false;
    for (; digits < p_ && *digits != 'e' && *digits != 'E'; ++digits) {
      if (*digits == '.') {
        point = true;
      } else if (found) {
        first += point ? 0 : 1;
      } else {
        found = *digits != '0';
        first -= point ? 1 : 0;
      }
    }
    if (digits < p_) {
      ++digits;
      const bool minus = *digits == '-';
      if (*digits == '+' || minus) ++digits;
      if (std::from_chars(digits, p_, exponent).ec != std::errc()) {
        return !minus;
      }
      if (minus) exponent = -exponent;
    }
    return found && first + exponent > 0;
  }

  char Peek() const { return p_ == end_ ? '\0' : *p_; }
  bool Digit() const { return p_ != end_ && *p_ >= '0' && *p_ <= '9'; }
  void SkipDigits() { p_ = PastDigits(p_, end_); }
  void SkipSpace() {
    while (p_ != end_ &&
           (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) {
      ++p_;
    }
  }
  bool Fail(const char* reason, const char* where) {
    reason_ = reason;
    failed_ = where;
    return false;
  }

  const absl::Span<const StringView> wanted_;
  const char* const begin_;
  const char* p_;
  const char* const end_;
  std::string open_;  // a '[' or '{' for each list or object around p_
  JsonBody body_;
  JsonMember* member_ = nullptr;  // the wanted one around p_
  const char* member_start_ = nullptr;
  const char* reason_ = "";
  const char* failed_ = nullptr;
};

}  // namespace

StatusOr<JsonBody> CheckJson(StringView text,
                             absl::Span<const StringView> wanted) {
  if (text.empty()) {
    return InvalidArgument("JSON Parse error: The document is empty");
  }
  return JsonChecker(text, wanted).Check();
}

}  // namespace headrace::serving
