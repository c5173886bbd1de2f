// A server of methods over gRPC.
#pragma once

#include <memory>
#include <string>

#include "distributed/transport.h"

namespace headrace::distributed {

std::unique_ptr<Listener> ListenGrpc(ListenOptions options, std::string* error);

}  // namespace headrace::distributed
