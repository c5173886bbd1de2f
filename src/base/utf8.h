// UTF-8 by hand: steps over characters, code points in and out.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace headrace {

// What stands for bytes that are no UTF-8 (Unicode's U+FFFD).
inline constexpr int32_t kReplacementCharacter = 0xfffd;

inline bool IsUtf8Continuation(char c) { return (c & 0xc0) == 0x80; }

// Bytes that do not continue a character: characters, where the text is right.
inline int64_t Utf8Length(absl::string_view s) {
  int64_t n = static_cast<int64_t>(s.size());
  size_t i = 0;
  for (; i + 8 <= s.size(); i += 8) {  // bytes with bit 7 and without bit 6
    uint64_t v;
    std::memcpy(&v, s.data() + i, 8);
    n -= __builtin_popcountll(v >> 7 & ~(v >> 6) & 0x0101010101010101);
  }
  for (; i < s.size(); ++i) n -= IsUtf8Continuation(s[i]);
  return n;
}

// Where `count` characters after byte `at` end; s.size() if there are fewer.
inline size_t Utf8Advance(absl::string_view s, size_t at, int64_t count) {
  for (; count > 0 && at < s.size(); --count) {
    ++at;
    while (at < s.size() && IsUtf8Continuation(s[at])) ++at;
  }
  return at;
}

// Reads the character at *at and steps over it. -1 and one byte (or the
// longest wrong prefix) when it is no valid UTF-8.
int32_t Utf8Next(absl::string_view s, size_t* at);
void Utf8Append(int32_t code_point, std::string* out);

}  // namespace headrace
