// AWS Signature Version 4: who asks, proven by a key that is not sent.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "base/status.h"

namespace headrace {

struct AwsCredentials {
  std::string id, secret;
  std::string session;  // of temporary ones, else ""
};

// What a body's place has that is not signed.
inline constexpr char kUnsignedBody[] = "UNSIGNED-PAYLOAD";

struct AwsCall {
  std::string method, host;
  std::string path;      // percent-encoded
  std::string query;     // "a=b&c=", sorted by name, percent-encoded
  std::string body_sum;  // SHA-256 in hexadecimal, or kUnsignedBody
  std::string region, service;
  std::vector<std::string> headers;  // "name: value"; all are signed
};

// The headers to send beside those of the call, "Host" among them.
std::vector<std::string> AwsHeaders(const AwsCall& call,
                                    const AwsCredentials& credentials,
                                    std::time_t now);

}  // namespace headrace
