// What libheadrace_grpc.so shows, and by what it tells whether it fits.
#pragma once

#include <string>

#include "distributed/transport.h"
#include "headrace/version.h"

namespace headrace::distributed {

// "0.1.0": of what is compiled with this.
inline std::string OwnVersionText() {
  return std::to_string(HR_VERSION_MAJOR) + "." +
         std::to_string(HR_VERSION_MINOR) + "." +
         std::to_string(HR_VERSION_PATCH);
}

// "0.1.0 interface 2": of those who call, and of the library.
inline std::string TransportInterface() {
  return OwnVersionText() + " interface " + std::to_string(kTransportInterface);
}

inline constexpr char kGrpcTransportEntry[] = "HeadraceGrpcTransport";
// The transport, which lives as long as the process; null, and why in *error,
// where `interface` is not the library's own or gRPC cannot be started.
using GrpcTransportEntry = Transport*(const char* interface,
                                      std::string* error);

}  // namespace headrace::distributed
