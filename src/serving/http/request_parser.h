// Requests of HTTP/1.1 cut out of what a connection sends.
#pragma once

#include <string>

#include "serving/http/http_message.h"

namespace headrace::serving {

struct HttpLimits {
  size_t head_bytes = 64 << 10;           // request line and headers: else 431
  size_t body_bytes = size_t{512} << 20;  // as sent and inflated: else 413
  // What compressed bodies may inflate to, where that is less.
  size_t inflated_bytes = 100 << 20;
};

// Parses one request after the other. What it was given to read is one text
// that grows at its end, and shrinks at its front by whole requests.
class RequestParser {
 public:
  // tells_head: kHead is wanted.
  explicit RequestParser(const HttpLimits& limits, bool tells_head = false)
      : limits_(limits), tells_head_(tells_head) {}

  enum class Result {
    kMore,      // the request is not there yet
    kContinue,  // the same, and the client waits for "100 Continue"
    // request() is there but for its body, of which nothing has been looked at.
    // Told once, where it is wanted: Parse again to go on.
    kHead,
    kRequest,  // request() is there, and is used() bytes long
    kError,    // the connection is to be answered status(), and closed
  };
  // `text`: all that has come since the last request's end.
  Result Parse(StringView text);
  // To go on with the next request, `used()` bytes further.
  void Restart();

  // Points into the text that Parse was given last, or into the parser.
  const HttpRequest& request() const { return request_; }
  size_t used() const { return used_; }
  int status() const { return status_; }
  const std::string& error() const { return error_; }
  // How many bytes of a body are still to come, as far as it is known.
  size_t missing() const { return missing_; }

 private:
  Result Fail(int status, std::string error);
  Result Head(StringView text);
  bool RequestLine(StringView line);
  bool HeaderLine(StringView line);
  bool Target(StringView target);
  bool Framing();
  bool Connection();
  Result Body(StringView text);
  Result Chunks(StringView text);
  Result Finish();

  const HttpLimits limits_;
  const bool tells_head_;
  HttpRequest request_;
  const char* base_ = nullptr;  // the text that the request points into
  size_t head_ = 0;             // its length, 0 until it is whole
  size_t scanned_ = 0;          // the text up to there holds no end of the head
  size_t used_ = 0, missing_ = 0;
  bool chunked_ = false, expects_continue_ = false;
  size_t length_ = 0;  // of a body that is not chunked
  std::string chunks_, inflated_;
  size_t at_ = 0;  // the chunks up to there are in chunks_
  int status_ = 0;
  std::string error_;
};

}  // namespace headrace::serving
