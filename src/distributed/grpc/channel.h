// Calls over gRPC, as their caller sees them.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <functional>
#include <memory>

#include "distributed/transport.h"
#include "rpc/event_queue.h"

namespace headrace::distributed {

// Of calls that begin now.
using QueueNow = std::function<std::shared_ptr<EventQueue>()>;

// A connection of its own to that address, made with the first call.
std::shared_ptr<Channel> ConnectGrpc(const std::string& address,
                                     const ConnectOptions& options,
                                     QueueNow queue_now);

}  // namespace headrace::distributed
