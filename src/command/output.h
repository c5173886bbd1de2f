// What a subcommand prints, and how texts of files are made safe for terminals.
#pragma once

#include <string>

#include "base/status.h"

namespace headrace::command {

// Text on its way to a file descriptor, or kept. Not thread-safe. A reader that
// has gone away (a closed pipe) is no error: what comes then is dropped.
class Output {
 public:
  // Kept in text().
  Output() = default;
  // Written to `fd`, which is borrowed.
  explicit Output(int fd) : fd_(fd) {}

  template <typename... Args>
  void Print(const Args&... args) {
    absl::StrAppend(&text_, args...);
    if (fd_ >= 0 && text_.size() >= kEnough) Flush().IgnoreError();
  }
  // The first error of writing, unless the reader has gone away.
  Status Flush();

  // What was not written yet.
  const std::string& text() const { return text_; }
  // Whether nobody reads any more: long work may end.
  bool closed() const { return closed_; }

 private:
  static constexpr size_t kEnough = 64 << 10;

  const int fd_ = -1;
  std::string text_;
  Status status_;
  bool closed_ = false;
};

// The text without what moves a terminal's cursor or turns its writing around:
// control characters, marks of direction and bytes that are no UTF-8 come as
// "\n", "\x1b", "\u202e".
std::string Escaped(StringView text);
// The same of several lines, which stay lines: messages of errors.
std::string EscapedLines(StringView text);

// Bytes as Python's repr: b'...'.
std::string BytesText(StringView bytes);

}  // namespace headrace::command
