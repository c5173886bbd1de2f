#include "command/output.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/files/file_system.h"
#include "base/utf8.h"

namespace headrace::command {
namespace {

bool MovesOrTurns(int32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c ||
         (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

// As Python writes a byte that has no letter of its own.
std::string ByteText(unsigned char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return absl::StrFormat("\\x%02x", c);
  }
}

}  // namespace

Status Output::Flush() {
  size_t done = 0;
  while (fd_ >= 0 && status_.ok() && !closed_ && done < text_.size()) {
    const ssize_t n = write(fd_, text_.data() + done, text_.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      status_ = ErrnoStatus(errno, "cannot write the output");
    }
  }
  if (fd_ >= 0) text_.clear();
  return status_;
}

std::string Escaped(StringView text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t c = Utf8Next(text, &at);
    if (c >= 0 && !MovesOrTurns(c)) {
      absl::StrAppend(&out, text.substr(begin, at - begin));
    } else if (c > 0xff) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      for (const char byte : text.substr(begin, at - begin)) {
        out += ByteText(static_cast<unsigned char>(byte));
      }
    }
  }
  return out;
}

std::string EscapedLines(StringView text) {
  return absl::StrJoin(absl::StrSplit(text, '\n'), "\n",
                       [](std::string* out, StringView line) {
                         while (absl::ConsumePrefix(&line, "\t")) *out += '\t';
                         *out += Escaped(line);
                       });
}

std::string BytesText(StringView bytes) {
  const bool single = bytes.find('\'') != StringView::npos &&
                      bytes.find('"') == StringView::npos;
  const char quote = single ? '"' : '\'';
  std::string out = {'b', quote};
  for (const char c : bytes) {
    if (c == quote || c == '\\') {
      out += {'\\', c};
    } else if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += ByteText(static_cast<unsigned char>(c));
    }
  }
  return out + quote;
}

}  // namespace headrace::command
