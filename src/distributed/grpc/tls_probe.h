// Why two processes cannot talk, where it is for TLS: gRPC tells of a peer that
// ended the connection, and waits on where it was asked to wait for the peer.
#pragma once

#include <chrono>
#include <string>

#include "distributed/transport.h"

namespace headrace::distributed {

struct TlsFinding {
  enum class Kind {
    kNothing,  // nobody is there, or says anything
    kFine,     // both take each other, or it is not for TLS that they do not
    kRefused,
  };
  Kind kind = Kind::kNothing;
  std::string why;  // of kRefused, with the peer's address
};

// Connects to "host:port", shakes hands as a channel with these keys does, and
// lets go. Waits so long at most. Addresses of other kinds are not tried.
TlsFinding ProbeTls(const std::string& address, const TlsKeys& tls,
                    std::chrono::milliseconds patience);

}  // namespace headrace::distributed
