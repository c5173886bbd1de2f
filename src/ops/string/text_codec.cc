#include "ops/string/text_codec.h"

#include <iconv.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/utf8.h"

namespace headrace {
namespace {

class Utf8Decoder : public TextDecoder {
 public:
  void Read(StringView text,
            const std::function<void(int32_t, size_t)>& each) override {
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const int32_t c = Utf8Next(text, &at);
      each(c, begin);
    }
  }
};

class IconvDecoder : public TextDecoder {
 public:
  explicit IconvDecoder(iconv_t state) : state_(state) {}
  ~IconvDecoder() override { iconv_close(state_); }
  IconvDecoder(const IconvDecoder&) = delete;
  IconvDecoder& operator=(const IconvDecoder&) = delete;

  void Read(StringView text,
            const std::function<void(int32_t, size_t)>& each) override {
    iconv(state_, nullptr, nullptr, nullptr, nullptr);
    char* in = const_cast<char*>(text.data());
    size_t left = text.size();
    while (left > 0) {
      const size_t begin = text.size() - left;
      int32_t c = 0;
      char* out = reinterpret_cast<char*>(&c);
      size_t room = sizeof(c);  // one character at a time
      errno = 0;
      iconv(state_, &in, &left, &out, &room);
      if (room == 0) {
        each(c, begin);
      } else if (errno == EILSEQ || errno == EINVAL) {
        each(-1, begin);
        const size_t skipped = errno == EINVAL ? left : 1;
        in += skipped;
        left -= skipped;
      } else if (text.size() - left == begin) {
        return;  // neither read nor written: nothing more can come
      }
    }
  }

 private:
  iconv_t state_;
};

// Text whose first character may be a mark of its byte order; without one, the
// highest byte comes first.
class MarkedDecoder : public TextDecoder {
 public:
  MarkedDecoder(size_t width, std::unique_ptr<TextDecoder> high_first,
                std::unique_ptr<TextDecoder> low_first)
      : width_(width),
        high_first_(std::move(high_first)),
        low_first_(std::move(low_first)) {}

  void Read(StringView text,
            const std::function<void(int32_t, size_t)>& each) override {
    const StringView low("\xff\xfe\0\0", width_);
    const StringView high = StringView("\0\0\xfe\xff", 4).substr(4 - width_);
    const StringView mark = text.substr(0, width_);
    if (mark != low && mark != high) return high_first_->Read(text, each);
    // The mark counts as a part of the character that follows.
    (mark == low ? low_first_ : high_first_)
        ->Read(text.substr(width_), [&](int32_t c, size_t at) {
          each(c, at == 0 ? 0 : at + width_);
        });
  }

 private:
  size_t width_;
  std::unique_ptr<TextDecoder> high_first_, low_first_;
};

}  // namespace

StatusOr<std::unique_ptr<TextDecoder>> MakeTextDecoder(StringView encoding) {
  std::string name = absl::AsciiStrToUpper(encoding);
  for (const char* wide : {"UTF-16", "UTF-32"}) {
    if (name != wide) continue;
    HR_ASSIGN_OR_RETURN(auto high, MakeTextDecoder(name + "BE"));
    HR_ASSIGN_OR_RETURN(auto low, MakeTextDecoder(name + "LE"));
    return std::unique_ptr<TextDecoder>(new MarkedDecoder(
        name == "UTF-16" ? 2 : 4, std::move(high), std::move(low)));
  }
  if (name == "UTF-8" || name == "UTF8") {
    return std::unique_ptr<TextDecoder>(new Utf8Decoder);
  }
  // "UTF-16-BE" is iconv's "UTF-16BE", "US ASCII" its "US-ASCII".
  name = absl::StrReplaceAll(name, {{"-BE", "BE"}, {"-LE", "LE"}, {" ", "-"}});
  if (name.find('\0') == std::string::npos && !name.empty() &&
      name.find('/') == std::string::npos) {
    const iconv_t state = iconv_open("UTF-32LE", name.c_str());
    if (state != reinterpret_cast<iconv_t>(-1)) {
      return std::unique_ptr<TextDecoder>(new IconvDecoder(state));
    }
  }
  return InvalidArgument("Could not create converter for input encoding: ",
                         encoding);
}

StatusOr<TextEncoding> TextEncodingOf(StringView name) {
  if (name == "UTF-8") return TextEncoding::kUtf8;
  if (name == "UTF-16-BE") return TextEncoding::kUtf16Be;
  if (name == "UTF-32-BE") return TextEncoding::kUtf32Be;
  return InvalidArgument(
      "Invalid encoding \"", name,
      "\": output_encoding must be one of UTF-8, UTF-16-BE or UTF-32-BE");
}

void AppendCharacter(int32_t c, TextEncoding encoding, std::string* out) {
  auto append16 = [out](int32_t unit) {
    *out += static_cast<char>(unit >> 8);
    *out += static_cast<char>(unit & 0xff);
  };
  if (encoding == TextEncoding::kUtf8) {
    Utf8Append(c, out);
  } else if (encoding == TextEncoding::kUtf32Be) {
    append16(c >> 16);
    append16(c & 0xffff);
  } else if (c < 0x10000) {
    append16(c);
  } else {
    append16(0xd800 | (c - 0x10000) >> 10);
    append16(0xdc00 | ((c - 0x10000) & 0x3ff));
  }
}

bool IsCharacter(int32_t c) {
  return c >= 0 && c <= 0x10ffff && !(c >= 0xd800 && c <= 0xdfff);
}

}  // namespace headrace
