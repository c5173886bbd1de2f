// Requests over HTTP and HTTPS, by libcurl, which is loaded when the first is
// made. Nothing waits without a limit: see HttpRequest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace headrace {

// Answers that are kept in memory have at most so many bytes: a list of a
// million files has some 300 MB.
inline constexpr size_t kMostHttpBody = size_t{1} << 30;

struct HttpRequest {
  std::string method = "GET";
  std::string url;                   // percent-encoded
  std::vector<std::string> headers;  // "Name: value"
  // What is sent: so many bytes, which `body` gives from an offset on. It fills
  // what it is handed.
  uint64_t body_size = 0;
  std::function<Status(uint64_t offset, absl::Span<char> out)> body;
  // Takes the answer's bytes where its status is 2xx; false ends the transfer.
  // Without it, and of other statuses, they are the answer's `body`.
  std::function<bool(StringView bytes)> take;
  // Of the answer's `body`; more is ResourceExhausted.
  size_t most_body = kMostHttpBody;
  // HTTPS: whether the peer's certificate is looked at, and by which file of
  // trusted ones, "": CURL_CA_BUNDLE, else the system's.
  bool verify = true;
  std::string certificates;
  // Kerberos (SPNEGO), by the tickets of this process' user.
  bool negotiate = false;
  // To be connected; the whole request, 0: as long as it moves; and how long it
  // may move slower than 4 KiB a second, 0: for ever.
  std::chrono::milliseconds connect{10000}, whole{60000}, stall{60000};
};

struct HttpAnswer {
  int status = 0;
  // By their names in small letters.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Whether the peer may have seen the request: a connection was there.
  bool reached = false;

  // The last one's value; "" where there is none.
  StringView Header(StringView lower_name) const;
};

// Keeps connections between requests. Thread-safe; a forked child has
// connections of its own.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // OK for every answer, whatever its status. FailedPrecondition where libcurl
  // cannot be loaded or a certificate is not trusted, Unavailable where the
  // peer cannot be reached or the answer is cut, DeadlineExceeded by the
  // limits, Cancelled (CheckStop). Redirects are answers, too.
  Status Do(const HttpRequest& request, HttpAnswer* answer);

  // The one of the process, which lives for ever.
  static HttpClient* Shared();

 private:
  class Pool;
  const std::unique_ptr<Pool> pool_;
};

// The text with all but letters, digits, "-._~" and `also` as %XX.
std::string PercentEncode(StringView text, StringView also = "");

}  // namespace headrace
