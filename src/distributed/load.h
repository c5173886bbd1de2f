// gRPC's transport, from the library that has it.
#pragma once

#include "base/status.h"
#include "distributed/transport.h"

namespace headrace::distributed {

// libheadrace_grpc.so is looked for where HEADRACE_GRPC_LIBRARY says, else
// beside this library or module, in the package headrace_serving beside that,
// and where the loader looks. It is loaded once and stays; a failure is tried
// again by the next call. FailedPrecondition, with what to install, where it is
// not found, cannot be loaded or is of another version. The transport lives as
// long as the process.
StatusOr<Transport*> LoadTransport();

}  // namespace headrace::distributed
