// Any bytes as what a connection sends, in two pieces.
#include "serving/http/request_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace::serving;
  HttpLimits limits;
  limits.head_bytes = 4096;
  limits.body_bytes = limits.inflated_bytes = 1 << 16;
  RequestParser parser(limits, size % 2 == 1);
  std::string connection(data, size / 2);
  bool whole = false;
  for (;;) {
    const auto result = parser.Parse(connection);
    if (result == RequestParser::Result::kError) break;
    if (result == RequestParser::Result::kHead) continue;
    if (result == RequestParser::Result::kRequest) {
      connection.erase(0, parser.used());
      parser.Restart();
    } else if (whole) {
      break;
    } else {
      whole = true;
      connection.append(data + size / 2, size - size / 2);
      connection.shrink_to_fit();
    }
  }
  return 0;
}
