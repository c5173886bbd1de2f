// The transport of this process' tasks and clients, with the certificates that
// its environment names.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// What the environment says, all three or none: HEADRACE_CLUSTER_CERTIFICATE
// and HEADRACE_CLUSTER_KEY are files of what this process shows, in PEM,
// HEADRACE_CLUSTER_ROOTS one of who signs the certificates that it takes, of
// those that it calls and of those that call it. InvalidArgument, which names
// the variable, where one is missing or a file has no PEM text; the file's
// error where it cannot be read.
StatusOr<TlsKeys> KeysOfEnvironment(
    const std::function<const char*(const char*)>& variable);

// A transport that shows these keys wherever nothing else is said.
std::unique_ptr<Transport> WithKeys(Transport* transport, TlsKeys keys);

// LoadTransport's, with the keys of the process' environment as they are when
// it is first asked for. LoadTransport's and KeysOfEnvironment's errors, after
// which the next call tries again.
StatusOr<Transport*> TransportOfProcess();

}  // namespace headrace::distributed
