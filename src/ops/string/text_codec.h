// Texts of many encodings as code points, and code points as UTF-8, 16 or 32.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace headrace {

// Reads one encoding. Not thread-safe.
class TextDecoder {
 public:
  virtual ~TextDecoder() = default;
  // Calls each(code point, first byte) for every character in order; the code
  // point is -1 for bytes that are none.
  virtual void Read(StringView text,
                    const std::function<void(int32_t, size_t)>& each) = 0;
};

// For UTF-8, UTF-16 and UTF-32 of either byte order and all that the C
// library's iconv knows. InvalidArgument for other names.
StatusOr<std::unique_ptr<TextDecoder>> MakeTextDecoder(StringView encoding);

enum class TextEncoding { kUtf8, kUtf16Be, kUtf32Be };
// InvalidArgument but for "UTF-8", "UTF-16-BE", "UTF-32-BE".
StatusOr<TextEncoding> TextEncodingOf(StringView name);
// `code_point` must be a character (IsCharacter).
void AppendCharacter(int32_t code_point, TextEncoding encoding,
                     std::string* out);
// No surrogate and at most U+10FFFF.
bool IsCharacter(int32_t code_point);

}  // namespace headrace
