#include "distributed/grpc/arguments.h"

#include <arpa/inet.h>
#include <grpc/grpc.h>
#include <netinet/in.h>

namespace headrace::distributed {
namespace {

// A peer that is gone without a word is known after both.
constexpr int kProbeEveryMs = 4000, kProbeTimeoutMs = 5000;
// Of headers: texts of errors and their details.
constexpr int kLongestMetadata = 64 << 10;
constexpr int kFrame = 1 << 20;

// Whether only this machine is reached by it, or reaches it.
bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost") return true;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

std::vector<std::pair<const char*, int>> CommonArguments(
    const std::string& address, bool probes) {
  std::vector<std::pair<const char*, int>> arguments = {
      {GRPC_ARG_MAX_METADATA_SIZE, kLongestMetadata},
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrame},
  };
  // gRPC lets as much be under way as bandwidth times delay say. On loopback
  // that is the time that a process waits for a processor, and what is not
  // read yet grows to tens of megabytes, which no cache holds. Without, it is a
  // megabyte of each message that is read, and 64 KB.
  if (IsLoopback(address)) arguments.push_back({GRPC_ARG_HTTP2_BDP_PROBE, 0});
  if (probes) {
    arguments.insert(arguments.end(),
                     {{GRPC_ARG_KEEPALIVE_TIME_MS, kProbeEveryMs},
                      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kProbeTimeoutMs},
                      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}});
  }
  return arguments;
}

}  // namespace headrace::distributed
