// JSON for `--json`, written as it comes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace::command {

// Used in order:  j.BeginObject(); j.Key("a"); j.Int(1); j.End();
// Text that is no UTF-8 has U+FFFD for its wrong bytes; numbers that JSON does
// not have (NaN, infinities) become texts.
class JsonWriter {
 public:
  void BeginObject() { Begin('{'); }
  void BeginList() { Begin('['); }
  // The innermost object or list.
  void End();
  void Key(StringView key);
  void Text(StringView text);
  void Int(int64_t value) { Raw(absl::StrCat(value)); }
  void Unsigned(uint64_t value) { Raw(absl::StrCat(value)); }
  void Number(double value);
  void Single(float value);  // in as few digits as name it
  void Bool(bool value) { Raw(value ? "true" : "false"); }
  void Null() { Raw("null"); }

  // A member of an object.
  void Member(StringView key, StringView text) { Key(key), Text(text); }
  void IntMember(StringView key, int64_t value) { Key(key), Int(value); }
  template <typename Ints>
  void IntsMember(StringView key, const Ints& values) {
    Key(key);
    BeginList();
    for (const auto v : values) Int(static_cast<int64_t>(v));
    End();
  }
  template <typename Strings>
  void TextsMember(StringView key, const Strings& values) {
    Key(key);
    BeginList();
    for (const auto& v : values) Text(v);
    End();
  }

  // All that was written, with a line's end.
  std::string Take() { return std::move(text_) + "\n"; }

 private:
  struct Level {
    char close;
    bool empty = true;
  };
  void Begin(char open);
  void Raw(StringView value);
  // The comma and line before an element or key.
  void Separate();
  void NewLine();

  std::string text_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

// The text between quotes as JSON has it.
std::string JsonText(StringView text);

}  // namespace headrace::command
