// Keys of TLS looked at before gRPC takes them: it starts a server that nobody
// can reach where they are none.
#pragma once

#include "base/status.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// InvalidArgument unless a listener can show the certificate by the key, and
// client_roots, if any, are certificates.
Status CheckKeys(const TlsKeys& tls);

}  // namespace headrace::distributed
