#include "distributed/grpc/arguments.h"

#include <grpc/grpc.h>

namespace headrace::distributed {
namespace {

// A peer that is gone without a word is known after both.
constexpr int kProbeEveryMs = 4000, kProbeTimeoutMs = 5000;
// Of headers: texts of errors and their details.
constexpr int kLongestMetadata = 64 << 10;
constexpr int kFrame = 1 << 20;

}  // namespace

std::vector<std::pair<const char*, int>> CommonArguments(bool probes) {
  std::vector<std::pair<const char*, int>> arguments = {
      {GRPC_ARG_MAX_METADATA_SIZE, kLongestMetadata},
      {GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrame},
  };
  if (probes) {
    arguments.insert(arguments.end(),
                     {{GRPC_ARG_KEEPALIVE_TIME_MS, kProbeEveryMs},
                      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kProbeTimeoutMs},
                      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0}});
  }
  return arguments;
}

}  // namespace headrace::distributed
