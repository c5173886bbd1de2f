#include "serving/http/request_parser.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "serving/http/inflate.h"

namespace headrace::serving {
namespace {

// Methods are shorter; what is not ends as no request of HTTP's.
constexpr size_t kLongestMethod = 32;
// Empty lines that clients leave before a request, in bytes.
constexpr size_t kMostBlank = 8;
// The line that says how long a chunk is.
constexpr size_t kLongestChunkLine = 1024;

bool IsTokenChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         (c != '\0' &&
          StringView("!#$%&'*+-.^_`|~").find(c) != StringView::npos);
}
bool IsToken(StringView s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), IsTokenChar);
}
bool IsDigits(StringView s) {
  return !s.empty() && std::all_of(s.begin(), s.end(),
                                   [](char c) { return c >= '0' && c <= '9'; });
}

// The line at the front of `text`, without its end; moves `text` past it. False
// where the end is not there.
bool TakeLine(StringView* text, StringView* line) {
  const size_t end = text->find('\n');
  if (end == StringView::npos) return false;
  *line = text->substr(0, end);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  text->remove_prefix(end + 1);
  return true;
}

bool HasToken(StringView list, StringView token) {
  for (StringView part : absl::StrSplit(list, ',')) {
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(part), token)) {
      return true;
    }
  }
  return false;
}

// The whole head, blank line included, that begins at `text`; 0 where its end
// is not there. The first `scanned` bytes hold no end.
size_t HeadLength(StringView text, size_t scanned) {
  for (size_t at = scanned;; ++at) {
    at = text.find('\n', at);
    if (at == StringView::npos) return 0;
    if (at >= 1 && text[at - 1] == '\n') return at + 1;
    if (at >= 2 && text[at - 1] == '\r' && text[at - 2] == '\n') return at + 1;
  }
}

}  // namespace

void RequestParser::Restart() {
  request_ = HttpRequest();
  base_ = nullptr;
  head_ = scanned_ = used_ = missing_ = length_ = at_ = 0;
  chunked_ = expects_continue_ = false;
  chunks_ = std::string();
  inflated_ = std::string();
}

RequestParser::Result RequestParser::Fail(int status, std::string error) {
  status_ = status;
  error_ = std::move(error);
  return Result::kError;
}

RequestParser::Result RequestParser::Parse(StringView text) {
  if (head_ == 0) {
    const Result head = Head(text);
    if (head != Result::kRequest) return head;
    if (tells_head_) return Result::kHead;
  }
  const bool more_to_come = text.size() - head_ < length_;
  Result body = chunked_ ? Chunks(text) : Body(text);
  if (body == Result::kMore && expects_continue_ &&
      (chunked_ || more_to_come)) {
    expects_continue_ = false;
    body = Result::kContinue;
  }
  if (body != Result::kRequest) return body;
  if (text.data() != base_) {
    // The text has moved since the head was read.
    const size_t head = head_;
    scanned_ = 0;
    if (Head(text.substr(0, head)) == Result::kError) return Result::kError;
  }
  if (chunked_) {
    request_.body = chunks_;
  } else {
    request_.body = text.substr(head_, length_);
  }
  return Finish();
}

// kRequest: the head is there, and tells what comes.
RequestParser::Result RequestParser::Head(StringView text) {
  size_t blank = 0;
  while (blank < text.size() && (text[blank] == '\r' || text[blank] == '\n')) {
    if (++blank > kMostBlank) return Fail(400, "empty lines, and no request");
  }
  StringView rest = text.substr(blank);
  for (size_t i = 0; i < rest.size() && rest[i] != ' '; ++i) {
    if (i == kLongestMethod || !IsTokenChar(rest[i])) {
      return Fail(400, "this is no request of HTTP's");
    }
  }
  const size_t length = HeadLength(rest, std::max(scanned_, blank) - blank);
  if (std::max(length, length == 0 ? rest.size() : 0) > limits_.head_bytes) {
    return Fail(431, absl::StrCat("the request's headers are longer than ",
                                  limits_.head_bytes, " bytes"));
  }
  if (length == 0) {
    // An end may begin with the last two bytes.
    scanned_ = std::max<size_t>(text.size(), 2) - 2;
    return Result::kMore;
  }
  request_ = HttpRequest();
  StringView line;
  rest = rest.substr(0, length);
  if (!TakeLine(&rest, &line) || !RequestLine(line)) return Result::kError;
  while (TakeLine(&rest, &line) && !line.empty()) {
    if (!HeaderLine(line)) return Result::kError;
  }
  if (!Framing() || !Connection()) return Result::kError;
  head_ = blank + length;
  if (at_ == 0) at_ = head_;
  base_ = text.data();
  return Result::kRequest;
}

bool RequestParser::RequestLine(StringView line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  const StringView version =
      last == StringView::npos ? StringView() : line.substr(last + 1);
  if (first == last || !absl::StartsWith(version, "HTTP/")) {
    Fail(400, "the request line is not METHOD PATH HTTP/1.1");
    return false;
  }
  request_.method = line.substr(0, first);
  request_.keep_alive = version == "HTTP/1.1";
  if (!IsToken(request_.method) ||
      !Target(line.substr(first + 1, last - first - 1))) {
    Fail(400, "the request line is not METHOD PATH HTTP/1.1");
    return false;
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    Fail(505, absl::StrCat("the server speaks HTTP/1.1, not ",
                           absl::CHexEscape(version.substr(0, 32))));
    return false;
  }
  return true;
}

bool RequestParser::Target(StringView target) {
  for (const char c : target) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return false;
  }
  for (const StringView scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t slash = target.find('/');
    target = slash == StringView::npos ? StringView("/") : target.substr(slash);
  }
  if (target.empty() || (target[0] != '/' && target != "*")) return false;
  const size_t mark = target.find('?');
  request_.path = target.substr(0, mark);
  if (mark != StringView::npos) request_.query = target.substr(mark + 1);
  return true;
}

bool RequestParser::HeaderLine(StringView line) {
  const size_t colon = line.find(':');
  const StringView name = line.substr(0, colon);
  if (colon == StringView::npos || !IsToken(name)) {
    Fail(400, "a header is not NAME: VALUE");
    return false;
  }
  const StringView value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  for (const char c : value) {
    if ((static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7f) {
      Fail(400, absl::StrCat("header ", name, " holds control characters"));
      return false;
    }
  }
  request_.headers.emplace_back(name, value);
  return true;
}

// Where the body ends.
bool RequestParser::Framing() {
  StringView length, encoding;
  for (const auto& [name, value] : request_.headers) {
    if (absl::EqualsIgnoreCase(name, "content-length")) {
      if (!IsDigits(value) || (!length.empty() && length != value)) {
        Fail(400, "Content-Length is not one number of bytes");
        return false;
      }
      length = value;
    } else if (absl::EqualsIgnoreCase(name, "transfer-encoding")) {
      if (!encoding.empty() || !absl::EqualsIgnoreCase(value, "chunked")) {
        Fail(501, "the one Transfer-Encoding that is known is chunked");
        return false;
      }
      encoding = value;
    }
  }
  chunked_ = !encoding.empty();
  if (chunked_ && !length.empty()) {
    Fail(400, "both Transfer-Encoding and Content-Length");
    return false;
  }
  const StringView method = request_.method;
  if (!chunked_ && length.empty() &&
      (method == "POST" || method == "PUT" || method == "PATCH")) {
    Fail(411, "neither Content-Length nor chunks");
    return false;
  }
  length_ = 0;
  if (length.empty()) return true;
  const auto read =
      std::from_chars(length.data(), length.data() + length.size(), length_);
  if (read.ec != std::errc() || length_ > limits_.body_bytes) {
    Fail(413, absl::StrCat("the body is longer than ", limits_.body_bytes,
                           " bytes"));
    return false;
  }
  return true;
}

bool RequestParser::Connection() {
  for (const auto& [name, value] : request_.headers) {
    if (absl::EqualsIgnoreCase(name, "connection")) {
      if (HasToken(value, "keep-alive")) request_.keep_alive = true;
      if (HasToken(value, "close")) request_.keep_alive = false;
    } else if (absl::EqualsIgnoreCase(name, "expect")) {
      if (!absl::EqualsIgnoreCase(value, "100-continue")) {
        Fail(417, "the one thing to expect is 100-continue");
        return false;
      }
      if (base_ == nullptr) expects_continue_ = true;
    } else if (absl::EqualsIgnoreCase(name, "content-encoding")) {
      if (!absl::EqualsIgnoreCase(value, "gzip") &&
          !absl::EqualsIgnoreCase(value, "x-gzip") &&
          !absl::EqualsIgnoreCase(value, "identity")) {
        Fail(415, "the one Content-Encoding that is known is gzip");
        return false;
      }
    }
  }
  return true;
}

RequestParser::Result RequestParser::Body(StringView text) {
  const size_t there = text.size() - head_;
  missing_ = there < length_ ? length_ - there : 0;
  if (missing_ > 0) return Result::kMore;
  used_ = head_ + length_;
  return Result::kRequest;
}

RequestParser::Result RequestParser::Chunks(StringView text) {
  for (;;) {
    StringView rest = text.substr(at_), line;
    if (!TakeLine(&rest, &line)) {
      if (rest.size() > kLongestChunkLine) return Fail(400, "a bad chunk");
      break;
    }
    const StringView digits =
        absl::StripAsciiWhitespace(line.substr(0, line.find(';')));
    size_t size = 0;
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, size, 16);
    if (read.ec == std::errc::result_out_of_range ||
        (read.ec == std::errc() && size > limits_.body_bytes)) {
      return Fail(413, absl::StrCat("the body is longer than ",
                                    limits_.body_bytes, " bytes"));
    }
    if (read.ec != std::errc() || read.ptr != end) {
      return Fail(400, "a bad chunk");
    }
    if (size == 0) {
      // Trailers, which nobody looks at, up to an empty line.
      for (bool ends = false; !ends;) {
        if (!TakeLine(&rest, &line)) {
          if (rest.size() + (rest.data() - text.data()) - at_ >
              limits_.head_bytes) {
            return Fail(431, "the trailers are too long");
          }
          return Result::kMore;
        }
        ends = line.empty();
      }
      used_ = rest.data() - text.data();
      return Result::kRequest;
    }
    const StringView data = rest.substr(0, size);
    StringView after = rest.substr(data.size());
    if (!TakeLine(&after, &line)) {
      if (after.size() > 1) return Fail(400, "a chunk is longer than it says");
      missing_ = size - data.size() + 1;
      break;
    }
    if (data.size() < size || !line.empty()) {
      return Fail(400, "a chunk is longer than it says");
    }
    chunks_.append(data.data(), data.size());
    at_ = after.data() - text.data();
  }
  if (text.size() - head_ > limits_.body_bytes) {
    return Fail(413, absl::StrCat("the body is longer than ",
                                  limits_.body_bytes, " bytes"));
  }
  return Result::kMore;
}

RequestParser::Result RequestParser::Finish() {
  if (request_.body.size() > limits_.body_bytes) {
    return Fail(413, absl::StrCat("the body is longer than ",
                                  limits_.body_bytes, " bytes"));
  }
  const StringView encoding = request_.header("content-encoding");
  if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "identity") ||
      request_.body.empty()) {
    return Result::kRequest;
  }
  const size_t most = std::min(limits_.body_bytes, limits_.inflated_bytes);
  if (Status s = InflateGzip(request_.body, most, &inflated_); !s.ok()) {
    return Fail(absl::IsResourceExhausted(s) ? 413 : 400,
                std::string(s.message()));
  }
  request_.body = inflated_;
  return Result::kRequest;
}

}  // namespace headrace::serving
