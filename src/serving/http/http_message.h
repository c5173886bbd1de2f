// What a client asks over HTTP/1.1, and what it is answered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/status.h"

namespace headrace::serving {

// Points into its connection's memory: good until the handler returns that was
// given it.
struct HttpRequest {
  StringView method;  // as sent: "GET"
  StringView path;    // as sent, percent escapes and all, without the query
  StringView query;   // behind the '?', which is not part of it
  absl::InlinedVector<std::pair<StringView, StringView>, 16> headers;
  StringView body;  // inflated, where it came compressed
  // Whether the client's connection is to stay open.
  bool keep_alive = true;

  // The first header of that name, in any case; empty where there is none.
  StringView header(StringView name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  // Beside Content-Type, Content-Length, Connection and Date.
  std::vector<std::pair<std::string, std::string>> headers;
};

// "Not Found" of 404.
const char* HttpReason(int status);

}  // namespace headrace::serving
